"""Parallel text in files aligned by line; errors name file and line.

A corpus is a folder with the splits ``train``, ``valid`` and ``test``, and optionally a second test
set, ``test1``. Each has one file per language: ``train.en``, ``train.de``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

from ..system.errors import UserError
from ..system.files import make_folder, text_lines, write_lines
from ..system.progress import say

SPLITS = ("train", "valid", "test")
SECOND_TEST = "test1"  # the test set of the reverse direction, if it differs
BYTE_ORDER_MARK = "\ufeff"

Line = TypeVar("Line", str, bytes)


def twins_of(file: Path) -> Path:
    """``test.twins.de`` for ``test.de``: references of the demo corpus with swapped roles."""
    return file.with_name(f"{file.stem}.twins{file.suffix}")


def splits_in(folder: Path, lang: str) -> tuple[str, ...]:
    """The splits of a corpus, including the second test set if there is one."""
    return (*SPLITS, SECOND_TEST) if (folder / f"{SECOND_TEST}.{lang}").exists() else SPLITS


def read_lines(path: Path) -> Iterator[str]:
    """The sentences of a file, plain or gzipped, without line ends, LF or CR LF, and byte order
    mark. Raises :class:`UserError` for invalid UTF-8.
    """
    for number, (_, line) in enumerate(text_lines(path)):
        yield (line if number else line.removeprefix(BYTE_ORDER_MARK)).removesuffix("\r")


def paired(
    source: Path, target: Path, read: Callable[[Path], Iterator[Line]]
) -> Iterator[tuple[Line, Line]]:
    """Line pairs of two files. Raises :class:`UserError` for unequal lengths or empty files."""
    pairs, sides = 0, (read(source), read(target))
    for src, tgt in zip_longest(*sides):
        if src is None or tgt is None:
            all_lines = pairs + 1 + sum(1 for side in sides for _ in side)
            longer, shorter = (target, source) if src is None else (source, target)
            fault = f"{all_lines} lines, but {shorter} has {pairs}"
            raise UserError(f"{longer}: {fault}; align the two line by line")
        pairs += 1
        yield src, tgt
    if pairs == 0:
        raise UserError(f"{source}: no lines")


def read_parallel(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Sentence pairs of two files. Raises :class:`UserError` for an empty line."""
    for number, pair in enumerate(paired(source, target, read_lines), start=1):
        for file, line in zip((source, target), pair, strict=True):
            if not line.strip():
                raise UserError(f"{file}, line {number}: empty; remove this line from both sides")
        yield pair


def read_sides(source: Path, target: Path) -> tuple[list[str], list[str]]:
    """Lists of the sentences of both files, which may be empty lines."""
    pairs = list(paired(source, target, read_lines))
    return [src for src, _ in pairs], [tgt for _, tgt in pairs]


def check(folder: Path, langs: tuple[str, str]) -> None:
    """Raises :class:`UserError` for an invalid line of a corpus."""
    for split in splits_in(folder, langs[0]):
        for _ in read_parallel(*(folder / f"{split}.{lang}" for lang in langs)):
            pass


def write_pairs(
    out: Path, split: str, langs: tuple[str, str], pairs: Sequence[tuple[str, str]]
) -> None:
    """Writes the sides of ``pairs`` to ``out/SPLIT.LANG``."""
    for lang, side in zip(langs, zip(*pairs, strict=True), strict=True):
        write_lines(out / f"{split}.{lang}", side)
    say(f"{split}: {len(pairs):,} pairs")


def convert(
    source: Path, out: Path, langs: Iterable[str], one: Callable[[Path, Path, str], object]
) -> None:
    """Calls ``one(file, new file, language)`` for each file of a corpus that ``out`` lacks.

    Existing files are complete, so an interrupted conversion resumes with the next file.
    """
    make_folder(out)
    for lang in langs:
        for split in splits_in(source, lang):
            name = f"{split}.{lang}"
            if (out / name).exists():
                say(f"{name}: done before")
            else:
                one(source / name, out / name, lang)
