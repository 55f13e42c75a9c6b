"""Parallel text of the user's: ``train``, ``valid`` and ``test`` of two languages in a folder."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ..files import make_folder, need_folder, need_once, plain_or_gz, raw_lines, writing_bytes
from ..stages.engine import MIB, Preparation, Stage
from ..stages.progress import say
from ..stages.watch import size_of
from .parallel import SPLITS, paired, read_parallel
from .settings import TextSettings
from .shared_stages import prepared

_PACKED = 4  # times as large is text, unpacked, or less


def preparation(out: Path, text: TextSettings, folder: Path) -> Preparation:
    """``folder/SPLIT.LANGUAGE``, plain or .gz -> ``out/bin``. Raises UserError where the folder
    lacks a file, or two of its names are one file.
    """

    def sides(split: str) -> tuple[Path, Path]:
        source, target = (plain_or_gz(folder, f"{split}.{lang}") for lang in text.pair)
        return source, target

    def all_sides() -> list[Path]:
        return [side for split in SPLITS for side in sides(split)]

    if not (out / "raw").exists():
        need_folder(folder)
        need_once(all_sides())

    def make_raw(to: Path) -> None:
        make_folder(to)
        for split in SPLITS:
            if split != "train" or text.clean is None:  # cleaning drops what is invalid
                for _ in read_parallel(*sides(split)):
                    pass
        _say_overlap(sides("train"), {split: sides(split) for split in SPLITS if split != "train"})
        for split in SPLITS:
            for lang, side in zip(text.pair, sides(split), strict=True):
                with writing_bytes(to / f"{split}.{lang}") as file:
                    file.writelines(raw_lines(side))

    def room_mib() -> float:
        sizes = [size_of(side) * (_PACKED if side.suffix == ".gz" else 1) for side in all_sides()]
        return sum(sizes) / MIB

    does = f"{', '.join(SPLITS)} of {' and '.join(text.pair)} from {folder}"
    more = f"from={shlex.quote(str(folder.resolve()))}"
    return prepared(out, [Stage("raw", does, make_raw, room_mib)], text, more)


def _say_overlap(train: tuple[Path, Path], held_out: dict[str, tuple[Path, Path]]) -> None:
    """Says how many pairs there are, and how many of those held out are trained on, too. Raises
    UserError where a side is longer than the other.
    """
    held = {split: Counter(_pairs(sides)) for split, sides in held_out.items()}
    trained, total = set(), 0
    for pair in _pairs(train):
        total += 1
        if any(pair in pairs for pairs in held.values()):
            trained.add(pair)
    say(f"train: {total:,} pairs")
    for split, pairs in held.items():
        both = sum(pairs[pair] for pair in trained)
        say(f"{split}: {pairs.total():,} pairs, {both:,} of them in train, too")


def _pairs(sides: tuple[Path, Path]) -> Iterator[tuple[bytes, bytes]]:
    for source, target in paired(*sides, raw_lines):
        yield source.rstrip(b"\n"), target.rstrip(b"\n")
