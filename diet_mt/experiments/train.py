"""Execution of a training in its folder: locked, resumed after an interruption, skipped if done.

The folder contains the checkpoints, ``command``, ``revision`` (of the project at the start),
``train.log`` and, after the end, ``done``. A folder without checkpoints accepts another command.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

from ..evaluation.fairseq_options import import_fairseq
from ..evaluation.options import FOLDERS, RECORD, difference, options_of, revision
from ..system.engine import alone
from ..system.errors import UserError
from ..system.files import make_folder, read_text, write_text
from ..system.process import module, run_child, why
from ..system.progress import say, tail_of, teller, training_status
from .fairseq_command import Options, Training, whole

_TIME_IS_UP = b"due to cumulative_training_time"
# fairseq logs this after it has written all files of a checkpoint, checkpoint_last.pt last.
_SAVED = b"Saved checkpoint "
# Options with which a training does not continue from checkpoint_last.pt.
_NO_LAST = {"no-last-checkpoints", "no-save", "restore-file"}


def train(training: Training, check: Callable[[], None]) -> None:
    """Runs fairseq-train to its end. ``check`` is called before any file is written.

    Raises :class:`UserError` for a folder of another command, and if the training fails.
    """
    save = training.save
    refuse_another(training)
    if _is_finished(save):
        return
    check()
    make_folder(save)
    if training.node_rank:  # only the first machine writes other files
        if not has_ended(save, training.options):
            _run(training, save / f"train.{training.node_rank}.log")
        return
    with alone(save):
        # Another process may have ended meanwhile.
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
            # fairseq's exit status is 0 in this case, too.
            if _TIME_IS_UP in file.read():
                raise UserError(f"{save}: stopped by --stop-time-hours; give a larger value")
        (save / "done").touch()


def has_begun(save: Path) -> bool:
    """Whether a training was started in this folder."""
    return (save / "done").exists() or any(save.glob("checkpoint*.pt"))


def has_ended(save: Path, options: Options) -> bool:
    """Whether the last checkpoint has reached ``max-update``, ``max-epoch`` or ``patience``."""
    # From such a checkpoint, fairseq would still train one more update.
    last = save / "checkpoint_last.pt"
    if not last.exists():
        return False
    import_fairseq()
    from ..evaluation.checkpoint import load_state, reading, updates_of
    from ..fairseq_patches.repairs import PATIENCE

    with reading(last):
        state = load_state(last)
        updates = updates_of(state)
        # Validations since the best one; not counted without --patience.
        passed = int(state["extra_state"].get(PATIENCE, {}).get("num_runs", 0))
        # fairseq stores the number of the next epoch.
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
    """Raises :class:`UserError` if the folder contains a training by another or unknown command."""
    file = training.save / "command"
    if not has_begun(training.save):
        return
    if not file.is_file():
        raise UserError(f"{file}: missing, so the training cannot continue; choose another folder")
    here = _comparable(training.words())
    try:
        there = _comparable(shlex.split(read_text(file)))
    except (ValueError, KeyError):
        raise UserError(f"{file}: damaged, not a command of fairseq-train") from None
    if what := difference(there, here):
        hint = "remove it or choose another folder"
        raise UserError(f"{training.save}: started with another command ({what}); {hint}")


def _comparable(words: list[str]) -> dict[str, str]:
    """The data and the options, without paths of folders, because the project may have moved."""
    options = options_of(words)
    _, data = options.pop("")
    what = {name: " ".join(each) for name, each in options.items() if name not in FOLDERS}
    return {"the data": str(Path(data).resolve()), **what}


def _need_last(training: Training, log: Path) -> None:
    """Raises :class:`UserError` if the last checkpoint is lost, since fairseq would start anew and
    replace the best one. A training killed while saving its first checkpoint has none yet.
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
    """Runs fairseq-train, prints each new status. Raises :class:`UserError` if it fails."""
    command = training.command()
    tell = teller(training.save, lambda: training_status(tail_of(log), command) or "starting")
    if training.note:
        say(training.note)
    say(f"{training.save}: training; its log is {log}")
    with open(log, "ab") as file:
        words = [*training.words()[1:], *training.launch]
        status = run_child(module("fairseq_cli.train", words), out=file, tell=tell)
    if status:
        raise UserError(f"training failed: {why(status, log)}")
