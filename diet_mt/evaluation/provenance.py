"""Provenance of rows: files of the training, revision, date, versions."""

from __future__ import annotations

import datetime
import os
import subprocess
from importlib import metadata
from pathlib import Path

from ..errors import UserError, as_utf8
from .options import Options, parse, portable, words_of

BEST = "checkpoint_best.pt"
# Facts of the checkpoint that a training was fine-tuned from, next to its own.
RECORD = "pretrained.json"


def best_in(path: Path) -> Path:
    """The best checkpoint of a folder of a training; of a file, the file."""
    return path / BEST if path.is_dir() else path


def companion(checkpoint: Path, name: str) -> str:
    """``command`` or ``revision``, next to the checkpoints of a training; empty if missing."""
    file = checkpoint.parent / name
    if not file.is_file():
        return ""
    return file.read_text(encoding="utf-8", errors="surrogateescape").strip()


def training_of(checkpoint: Path) -> Options:
    """The options of its training; empty if another command trained."""
    try:
        return parse(words_of(portable(companion(checkpoint, "command"))))
    except UserError as error:
        raise UserError(f"{checkpoint.parent / 'command'}: damaged ({error})") from None


def portable_file(file: Path) -> str:
    """A file as seen from the working directory; of one elsewhere the name alone."""
    path, here = Path(os.path.abspath(file)), Path.cwd()
    if path.is_relative_to(here):
        return as_utf8(str(path.relative_to(here)))
    return as_utf8(path.name)


def revision(folder: Path) -> str:
    """``git describe`` of the project in ``folder``; empty if it is in no repository."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty"]
    try:
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return outcome.stdout.strip() if outcome.returncode == 0 else ""


def today() -> str:
    """The date, UTC, as records have it."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")


def fairseq_version() -> str:
    """The distribution that provides fairseq here, with its version: ``fairseq-fixed 0.12.3.1``."""
    for name in ("fairseq-fixed", "fairseq"):
        try:
            return f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
    return ""
