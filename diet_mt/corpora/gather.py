"""Puts the parts of a training corpus together, and a development set beside it.

The training text is taken over byte by byte, since it is cleaned afterwards. The development set
comes from two SGML files.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from ..errors import UserError
from ..files import blocks, make_folder, opened, write_lines, writing_bytes
from ..stages.engine import lines_in
from ..stages.progress import say
from .segments import read_segments


def count_lines(path: Path) -> int:
    """Lines of a file. Raises UserError where it cannot be read, or is empty."""
    lines = lines_in(path)
    if not lines:
        raise UserError(f"{path}: no lines")
    return lines


def gather(stems: list[Path], langs: tuple[str, str], out: Path) -> int:
    """Writes ``out/train.LANG`` from ``STEM.LANG`` of every stem; returns the number of pairs.

    Raises:
        UserError: a file is missing or empty, or the two sides of a stem differ in length.
    """
    make_folder(out)
    total = 0
    for stem in stems:
        counts = {path: count_lines(path) for path in (_side(stem, lang) for lang in langs)}
        if len(set(counts.values())) != 1:
            (longer, more), (shorter, fewer) = sorted(counts.items(), key=lambda x: -x[1])
            raise UserError(
                f"{longer}: {more} lines, but {shorter} has {fewer}; line n of one must translate "
                "line n of the other"
            )
        pairs = max(counts.values())
        say(f"{stem.name}: {pairs:,} pairs")
        total += pairs
    with ExitStack() as stack:
        for lang in langs:
            file = stack.enter_context(writing_bytes(out / f"train.{lang}"))
            for stem in stems:
                last = b""
                with opened(_side(stem, lang)) as part:
                    for block in blocks(part):
                        file.write(block)
                        last = block[-1:]
                if last != b"\n":
                    file.write(b"\n")
    return total


def _side(stem: Path, lang: str) -> Path:
    return stem.with_name(f"{stem.name}.{lang}")


def development(files: list[Path], langs: tuple[str, str], out: Path) -> int:
    """Writes ``out/valid.LANG`` from two SGML files; returns the number of pairs.

    Raises:
        UserError: as ``read_segments``; or they differ in length.
    """
    sides = [read_segments(file) for file in files]
    if len(sides[0]) != len(sides[1]):
        counts = f"{len(sides[0])} segments, but {files[1]} has {len(sides[1])}"
        raise UserError(f"{files[0]}: {counts}; replace them by the originals")
    for lang, sentences in zip(langs, sides, strict=True):
        write_lines(out / f"valid.{lang}", sentences)
    return len(sides[0])
