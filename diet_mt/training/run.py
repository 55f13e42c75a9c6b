"""Runs a training in its folder: alone, continued where it was, left alone when it has ended.

Beside the checkpoints stand ``command`` (what is trained), ``revision`` (of the project, when it
began), ``train.log`` and, in the end, ``done``. A folder without checkpoints, where nothing was
ever trained, may be begun anew with another command.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable
from pathlib import Path

from ..errors import UserError
from ..evaluation.fairseq_options import import_fairseq
from ..evaluation.options import FOLDERS, RECORD, difference, options_of, revision
from ..files import make_folder, read_text, write_text, writing
from ..stages.child import module, run_child, tail_of, why
from ..stages.lock import alone
from ..stages.progress import say, status_of
from .build import Training
from .options import Options, whole

_TIME_IS_UP = "due to cumulative_training_time"
# What fairseq says when a checkpoint has all of its names, checkpoint_last.pt the last of them.
_SAVED = b"Saved checkpoint "
# With one of these options a training does not go on from checkpoint_last.pt.
_NO_LAST = {"no-last-checkpoints", "no-save", "restore-file"}


def train(training: Training, check: Callable[[], None]) -> None:
    """Trains to the end, or says that this was done before.

    ``check`` is called before anything is written, unless the training is finished. Raises
    UserError where another command began in this folder, or one that is not known; another process
    is at work on it; the checkpoint to go on from is gone; or fairseq-train fails.
    """
    save = training.save
    refuse_another(training)
    if _is_finished(save):
        return
    check()
    make_folder(save)
    if training.node_rank:  # the first machine keeps the books
        if not has_ended(save, training.options):
            _run(training, save / f"train.{training.node_rank}.log")
        return
    with alone(save):
        # Another process may just have ended.
        refuse_another(training)
        if _is_finished(save):
            return
        if has_ended(save, training.options):
            (save / "done").touch()
            say(f"{save} has reached its end")
            return
        log = save / "train.log"
        _need_last(training, log)
        _open_books(training)
        written = log.stat().st_size if log.exists() else 0
        _run(training, log)
        with open(log, "rb") as file:
            file.seek(written)
            # fairseq ends as well as ever where its time is up.
            if _TIME_IS_UP in file.read().decode("utf-8", errors="replace"):
                raise UserError(
                    f"{save}: stopped by --stop-time-hours before its end; more of them continue it"
                )
        (save / "done").touch()


def has_begun(save: Path) -> bool:
    """Whether anything was ever trained in this folder."""
    return (save / "done").exists() or any(save.glob("checkpoint*.pt"))


def has_ended(save: Path, options: Options) -> bool:
    """Whether the last checkpoint is that of the end: fairseq would train one more update.

    The end is that of ``max-update`` or ``max-epoch``, or the validation at which the ``patience``
    was lost.
    """
    last = save / "checkpoint_last.pt"
    if not last.exists():
        return False
    import_fairseq()
    from ..evaluation.checkpoint import load_state, reading
    from ..fairseq_patches.unsaved_state import PATIENCE

    with reading(last):
        state = load_state(last)
        updates = int(state["optimizer_history"][-1]["num_updates"])
        # Validations since the best one; not counted without --patience.
        passed = int(state["extra_state"].get(PATIENCE, {}).get("num_runs", 0))
        # fairseq stores the epoch that comes next.
        position = state["extra_state"]["train_iterator"]
        epoch, begun = int(position["epoch"]) - 1, int(position["iterations_in_epoch"])
    reached = {"max-update": updates, "patience": passed, "max-epoch": 0 if begun else epoch}
    return any(0 < whole(options, name) <= count for name, count in reached.items())


def _is_finished(save: Path) -> bool:
    if (save / "done").exists():
        say(f"{save} is finished")
        return True
    return False


def refuse_another(training: Training) -> None:
    """Raises UserError if the folder was begun with another command, naming what differs, or with
    one that is not known.
    """
    file = training.save / "command"
    if not has_begun(training.save):
        return
    if not file.is_file():
        raise UserError(
            f"{file}: missing, so what was trained in this folder is not known and cannot go on; "
            "choose another folder"
        )
    here = _comparable(training.words())
    try:
        there = _comparable(shlex.split(read_text(file)))
    except (ValueError, KeyError):
        raise UserError(f"{file}: damaged, it does not say what was trained here") from None
    if what := difference(there, here):
        raise UserError(
            f"{training.save}: begun with another command ({what}); remove it or choose another "
            "folder"
        )


def _need_last(training: Training, log: Path) -> None:
    """Raises UserError if the checkpoint to go on from is gone: fairseq would begin again at 0, and
    replace the best one.

    A training that was killed while it saved its first checkpoint never had it.
    """
    save = training.save
    begun = has_begun(save) and not (log.is_file() and _SAVED not in log.read_bytes())
    if (
        begun
        and not any(save.glob("checkpoint_last*.pt"))
        and not training.options.keys() & _NO_LAST
    ):
        raise UserError(
            f"{save / 'checkpoint_last.pt'}: missing, so the training cannot go on; put it back (a "
            "copy of the latest checkpoint will do), or choose another folder"
        )


def _comparable(words: list[str]) -> dict[str, str]:
    """The data and the options, without those that say where: the project itself may have moved."""
    options = options_of(words)
    _, data = options.pop("")  # nothing else comes first
    what = {name: " ".join(each) for name, each in options.items() if name not in FOLDERS}
    return {"the data": str(Path(data).resolve()), **what}


def _open_books(training: Training) -> None:
    begun = has_begun(training.save)
    record = training.save / RECORD
    if (pretrained := training.options.get("finetune-from-model")) and not record.exists():
        import_fairseq()
        from ..evaluation.checkpoint import read_pretrained

        write_text(record, json.dumps(read_pretrained(Path(pretrained[0]))))
    with writing(training.save / "command") as file:
        file.write(shlex.join(training.words()))
    if not (begun and (training.save / "revision").exists()):
        with writing(training.save / "revision") as file:
            file.write(revision(Path(__file__).parent) + "\n")


def _run(training: Training, log: Path) -> None:
    """fairseq-train to its end; what it says goes to ``log``."""
    started = time.monotonic()

    def tell() -> None:
        say(f"{training.save}: {status_of(tail_of(log))}, {time.monotonic() - started:.0f} s")

    if training.note:
        say(training.note)
    say(f"{training.save}: training; its log is {log}")
    with open(log, "ab") as file:
        words = [*training.words()[1:], *training.launch]
        ended = run_child(module("fairseq_cli.train", words), out=file, tell=tell)
    if ended:
        raise UserError(f"training failed: {why(ended, log)}")
