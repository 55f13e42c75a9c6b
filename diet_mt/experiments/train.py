"""Runs a training in its folder: locked, resumed after an interruption, skipped if finished.

The folder contains the checkpoints, ``command``, ``revision`` (of the project at the start),
``train.log`` and, in the end, ``done``. In a folder without checkpoints, another command may be
started.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable
from pathlib import Path

from ..evaluation.fairseq_options import import_fairseq
from ..evaluation.options import FOLDERS, RECORD, difference, options_of, revision
from ..system.engine import alone
from ..system.errors import UserError
from ..system.files import make_folder, read_text, write_text
from ..system.process import module, run_child, why
from ..system.progress import say, tail_of, training_status
from .fairseq_command import Options, Training, whole

_TIME_IS_UP = "due to cumulative_training_time"
# fairseq's line once a checkpoint has all of its names, checkpoint_last.pt the last of them.
_SAVED = b"Saved checkpoint "
# With one of these options a training does not continue from checkpoint_last.pt.
_NO_LAST = {"no-last-checkpoints", "no-save", "restore-file"}


def train(training: Training, check: Callable[[], None]) -> None:
    """Runs fairseq-train to its end. ``check``: called before anything is written."""
    save = training.save
    refuse_another(training)
    if _is_finished(save):
        return
    check()
    make_folder(save)
    if training.node_rank:  # the first machine writes the other files
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
        _write_command(training)
        written = log.stat().st_size if log.exists() else 0
        _run(training, log)
        with open(log, "rb") as file:
            file.seek(written)
            # fairseq's status is 0 then, too.
            if _TIME_IS_UP in file.read().decode("utf-8", errors="replace"):
                raise UserError(f"{save}: stopped by --stop-time-hours; a larger one continues")
        (save / "done").touch()


def has_begun(save: Path) -> bool:
    """Whether a training was started in this folder."""
    return (save / "done").exists() or any(save.glob("checkpoint*.pt"))


def has_ended(save: Path, options: Options) -> bool:
    """Whether the last checkpoint is the end, from which fairseq would train one update more: that
    of ``max-update``, ``max-epoch``, or the validation that exhausts the ``patience``.
    """
    last = save / "checkpoint_last.pt"
    if not last.exists():
        return False
    import_fairseq()
    from ..evaluation.checkpoint import load_state, reading
    from ..fairseq_patches.repairs import PATIENCE

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
    """Raises UserError if the folder was begun with another or an unknown command."""
    file = training.save / "command"
    if not has_begun(training.save):
        return
    if not file.is_file():
        raise UserError(f"{file}: missing, so the training cannot continue; choose another folder")
    here = _comparable(training.words())
    try:
        there = _comparable(shlex.split(read_text(file)))
    except (ValueError, KeyError):
        raise UserError(f"{file}: damaged, it is no command of fairseq-train") from None
    if what := difference(there, here):
        hint = "remove it or choose another folder"
        raise UserError(f"{training.save}: begun with another command ({what}); {hint}")


def _comparable(words: list[str]) -> dict[str, str]:
    """The data and the options, except paths of folders: the project may have moved."""
    options = options_of(words)
    _, data = options.pop("")
    what = {name: " ".join(each) for name, each in options.items() if name not in FOLDERS}
    return {"the data": str(Path(data).resolve()), **what}


def _need_last(training: Training, log: Path) -> None:
    """Raises UserError if the last checkpoint is lost: fairseq would begin again and replace the
    best one. A training killed while it saved its first checkpoint never had it.
    """
    save = training.save
    if training.options.keys() & _NO_LAST or any(save.glob("checkpoint_last*.pt")):
        return
    if has_begun(save) and not (log.is_file() and _SAVED not in log.read_bytes()):
        hint = "restore it (a copy of the latest checkpoint), or choose another folder"
        raise UserError(f"{save / 'checkpoint_last.pt'}: missing; {hint}")


def _write_command(training: Training) -> None:
    begun = has_begun(training.save)
    record = training.save / RECORD
    if (pretrained := training.options.get("finetune-from-model")) and not record.exists():
        import_fairseq()
        from ..evaluation.checkpoint import read_pretrained

        write_text(record, json.dumps(read_pretrained(Path(pretrained[0]))))
    write_text(training.save / "command", shlex.join(training.words()))
    if not (begun and (training.save / "revision").exists()):
        write_text(training.save / "revision", revision(Path(__file__).parent) + "\n")


def _run(training: Training, log: Path) -> None:
    """fairseq-train to its end, with its output in ``log``; prints each new status."""
    started, printed = time.monotonic(), ""

    def tell() -> None:
        nonlocal printed
        status = training_status(tail_of(log), training.command()) or "starting"
        if status != printed:
            printed = status
            say(f"{training.save}: {status}, {time.monotonic() - started:.0f} s")

    if training.note:
        say(training.note)
    say(f"{training.save}: training; its log is {log}")
    with open(log, "ab") as file:
        words = [*training.words()[1:], *training.launch]
        status = run_child(module("fairseq_cli.train", words), out=file, tell=tell)
    if status:
        raise UserError(f"training failed: {why(status, log)}")
