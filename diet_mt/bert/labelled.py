"""Labelled sentences and sentence pairs, the common form of classification tasks.

Tasks are published as tables: a line is a row, columns end at tabs, and quotes are letters like any
other. A CSV reader would swallow lines after a quotation mark at the beginning of a sentence.

A raw folder holds, for each split (train, valid, test, ...), one file per part: ``SPLIT.input0``,
``SPLIT.input1`` for pairs, ``SPLIT.id``, and ``SPLIT.label`` where the labels are known. Line n of
each belongs to the same example.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ..corpora.parallel import BYTE_ORDER_MARK
from ..system.errors import UserError
from ..system.files import decoded, make_folder, raw_lines, write_lines, writing
from ..system.progress import say

SKIP, REFUSE = "skip", "refuse"


@dataclass(frozen=True)
class Example:
    """One sentence or pair; ``label`` is None where it is not known."""

    id: str
    sentences: tuple[str, ...]
    label: str | None


@dataclass(frozen=True)
class Labels:
    """Valid labels: one of ``names``, by number (F1's positive one is number 1), or a score between
    ``low`` and ``high``.
    """

    names: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0

    @property
    def is_score(self) -> bool:
        return not self.names

    def checked(self, text: str, where: str) -> str:
        """``text``, if it is a valid label. Raises UserError otherwise."""
        if not self.is_score:
            if text not in self.names:
                raise UserError(f"{where}: label '{text}', expected {', '.join(self.names)}")
            return text
        try:
            score = float(text)
        except ValueError:
            score = math.nan
        if not self.low <= score <= self.high:  # nor is NaN
            raise UserError(f"{where}: score '{text}', expected {self.low:g} to {self.high:g}")
        return text


# Cells of a row by column, its file and line, and its number, from 0 -> an example.
MakeExample = Callable[[dict[str, str], str, int], Example]


def read_examples(
    path: Path,
    needed: Sequence[str],
    make: MakeExample,
    *,
    columns: Sequence[str] | None = None,
    bad_rows: str = REFUSE,
) -> Iterator[Example]:
    """The examples of a table, plain or gzipped; at least one. ``needed``: required columns;
    ``columns``: all, for a file without a header; ``bad_rows``: refuse, or skip and count them.
    """
    lines = enumerate(raw_lines(path), start=1)
    if columns is None:
        columns = _text(path, *next(lines, (1, b""))).split("\t")
        missing = [name for name in needed if name not in columns]
        if missing:
            header = f"expected the official header, with {', '.join(needed)}"
            raise UserError(f"{path}, line 1: no column '{missing[0]}'; {header}")
    skipped, first, count = 0, "", 0
    for number, raw in lines:
        where = f"{path}, line {number}"
        try:
            cells = _text(path, number, raw).split("\t")
            if len(cells) != len(columns):
                expected = f"{len(columns)} ({', '.join(columns)})"
                raise UserError(f"{where}: {len(cells)} columns, expected {expected}")
            example = make(dict(zip(columns, cells, strict=True)), where, count)
        except UserError as error:
            if bad_rows != SKIP:
                raise UserError(f"{error}; correct the row, or give --bad-rows skip") from None
            skipped += 1
            first = first or str(error)
            continue
        count += 1
        yield example
    if skipped:
        say(f"{skipped:,} bad rows were skipped; the first: {first}")
    if not count:
        no_rows = f"{path}: no rows; replace it with the official file"
        raise UserError(f"{first}; no row is left" if skipped else no_rows)


def _text(path: Path, number: int, raw: bytes) -> str:
    """A line without its end, and without the byte order mark that MRPC's files begin with."""
    line = decoded(raw, f"{path}, line {number}")
    if line.endswith("\r"):
        raise UserError(f"{path}, line {number}: Windows line end (CR LF); convert to plain LF")
    return line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line


def write_split(folder: Path, split: str, examples: Iterable[Example]) -> None:
    """Writes the files of one split."""
    make_folder(folder)
    count = 0
    with ExitStack() as stack:
        files = {}
        for example in examples:
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


def write_label_dictionary(path: Path, labels: Labels) -> None:
    """fairseq's dictionary of the classes, in their order; its counts are not used."""
    write_lines(path, (f"{name} 1" for name in labels.names))
