"""fairseq-preprocess, as a process of its own: nothing here imports fairseq."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from ..errors import UserError
from ..stages.watch import python_module, watch


def shares(workers: int) -> int:
    """Into how many parts fairseq-preprocess is to divide a file, each for a process of its own.

    Its first process does its own part when all others have ended, so with a part for each core
    they would all wait as long again. The result is the same for any number.
    """
    return 4 * workers


def shown(options: Sequence[object], to: Path) -> str:
    """The command that writes the folder ``to``, to be pasted."""
    return shlex.join(["fairseq-preprocess", *_words(options, to)])


def preprocess(options: Sequence[object], to: Path, log: Path, name: str = "") -> None:
    """Writes the folder ``to``; what fairseq says goes to ``log``. Raises UserError where fairseq
    fails.
    """
    command = python_module("fairseq_cli.preprocess", *_words(options, to))
    watch(name or "fairseq-preprocess", command, log, to)


def _words(options: Sequence[object], to: Path) -> list[str]:
    return [*map(str, options), "--destdir", str(to)]


def need_fairseq(out: Path) -> None:
    """Raises UserError where fairseq is not installed, or cannot work in the folder ``out``."""
    if find_spec("fairseq_cli") is None:
        raise UserError("fairseq is not installed; install it (requirements/fairseq.txt)")
    if "," in str(out):  # the end of a name, for fairseq
        raise UserError(f"{out}: fairseq-preprocess allows no comma in a path; give another --out")
