"""Labelled sentences and sentence pairs, the form that every classification task is brought to.

A raw folder holds, for each split (train, valid, test, ...), one file for each part:
``SPLIT.input0``, ``SPLIT.input1`` for pairs, ``SPLIT.id``, and ``SPLIT.label`` where the labels are
known. Line n of each belongs to the same example.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ..errors import UserError
from ..files import make_folder, write_lines, writing
from ..stages.progress import say
from .table import TableRow

SKIP, REFUSE = "skip", "refuse"


@dataclass(frozen=True)
class Example:
    """One sentence or pair; ``label`` is None where it is not known."""

    id: str
    sentences: tuple[str, ...]
    label: str | None


@dataclass(frozen=True)
class Labels:
    """What a label may be: one of ``names``, or a score between ``low`` and ``high``.

    Classes are numbered in the order of ``names``; the one that F1 counts as positive is number 1.
    """

    names: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0

    @property
    def is_score(self) -> bool:
        return not self.names

    def checked(self, text: str, where: str) -> str:
        """``text`` itself. Raises UserError, which names the place, where it is no such label."""
        if not self.is_score:
            if text not in self.names:
                raise UserError(
                    f"{where}: unknown label '{text}'; it must be one of {', '.join(self.names)}"
                )
            return text
        try:
            score = float(text)
        except ValueError:
            score = math.nan
        if not self.low <= score <= self.high:  # nor is NaN
            raise UserError(
                f"{where}: score '{text}' is no number from {self.low:g} to {self.high:g}"
            )
        return text


def examples(
    rows: Iterable[TableRow],
    make: Callable[[TableRow, int], Example],
    *,
    bad_rows: str = REFUSE,
) -> Iterator[Example]:
    """Yields ``make(row, number)`` for each row, numbered from 0. Raises UserError for a bad row,
    unless they are skipped, and where no other row is left.

    Args:
        bad_rows: "refuse", or "skip" to leave out rows that ``make`` refuses, and say how many
            those were.
    """
    skipped, first, number = 0, "", 0
    for row in rows:
        try:
            example = make(row, number)
        except UserError as error:
            if bad_rows != SKIP:
                raise UserError(f"{error}; mend the row, or give --bad-rows skip") from None
            skipped += 1
            first = first or str(error)
            continue
        number += 1
        yield example
    if skipped:
        say(f"{skipped:,} bad rows were skipped; the first: {first}")
    if not number:
        raise UserError(f"{first}; no row is left")


def write_split(folder: Path, split: str, found: Iterable[Example]) -> None:
    """Writes the files of one split."""
    make_folder(folder)
    count = 0
    with ExitStack() as stack:
        files = {}
        for example in found:
            parts = {f"input{number}": text for number, text in enumerate(example.sentences)}
            parts["id"] = example.id
            if example.label is not None:
                parts["label"] = example.label
            for name, text in parts.items():
                if name not in files:
                    files[name] = stack.enter_context(writing(folder / f"{split}.{name}"))
                files[name].write(text + "\n")
            count += 1
    say(f"{split}: {count:,} examples")


def splits_of(folder: Path) -> list[str]:
    """The splits of a raw folder, in alphabetical order. Raises UserError if there are none."""
    found = sorted(path.name.removesuffix(".input0") for path in folder.glob("*.input0"))
    if not found:
        raise UserError(f"{folder}: holds no *.input0; remove it and prepare it again")
    return found


def write_label_dictionary(path: Path, labels: Labels) -> None:
    """fairseq's dictionary of the classes, in their order. Nothing counts the counts."""
    write_lines(path, (f"{name} 1" for name in labels.names))
