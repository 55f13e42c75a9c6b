"""Parallel text of the user's: ``train``, ``valid`` and ``test`` of two languages in a folder."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..files import make_folder, need_folder, need_once, plain_or_gz, raw_lines, writing_bytes
from ..stages.engine import MIB, Preparation, Stage
from ..stages.progress import say
from ..stages.watch import size_of
from .parallel import SPLITS, paired, read_parallel
from .settings import TextSettings
from .shared_stages import prepared

_HELD_OUT = ("valid", "test")
_PACKED = 4  # a gzipped text becomes about so many times as large


def preparation(out: Path, text: TextSettings, folder: Path) -> Preparation:
    """``folder/SPLIT.LANGUAGE``, plain or .gz -> ``out/bin``. Raises UserError where the folder
    lacks a file, or two of its names are one file.
    """
    # Of what is done before, the folder may be gone.
    files = {} if (out / "raw").exists() else _files(folder, text.pair)

    def make_raw(to: Path) -> None:
        make_folder(to)
        for split in SPLITS:
            if split in _HELD_OUT or text.clean is None:  # cleaning drops what is invalid
                for _ in read_parallel(*files[split]):
                    pass
        held_out = {split: Counter(_copied(files[split], to)) for split in _HELD_OUT}
        _say_overlap(_copied(files["train"], to), held_out)

    def room_mib() -> float:
        sides = [side for split in SPLITS for side in files[split]]
        return sum(size_of(s) * (_PACKED if s.suffix == ".gz" else 1) for s in sides) / MIB

    does = f"{', '.join(SPLITS)} of {' and '.join(text.pair)} from {folder}"
    more = f"from={shlex.quote(str(folder.resolve()))}"
    return prepared(out, [Stage("raw", does, make_raw, room_mib)], text, more)


def _files(folder: Path, langs: tuple[str, str]) -> dict[str, tuple[Path, Path]]:
    """The two sides of each split. Raises UserError as ``preparation``."""
    need_folder(folder)
    found = {}
    for split in SPLITS:
        source, target = (plain_or_gz(folder, f"{split}.{lang}") for lang in langs)
        found[split] = (source, target)
    need_once([side for sides in found.values() for side in sides])
    return found


def _copied(sides: tuple[Path, Path], to: Path) -> Iterator[tuple[bytes, bytes]]:
    """The pairs, without the ends of their lines, while they are written to ``to``, unpacked.
    Raises UserError where a side is longer than the other.
    """
    names = [side.name.removesuffix(".gz") for side in sides]
    with writing_bytes(to / names[0]) as source_file, writing_bytes(to / names[1]) as target_file:
        for source, target in paired(*sides, raw_lines):
            source_file.write(source)
            target_file.write(target)
            yield source.removesuffix(b"\n"), target.removesuffix(b"\n")


def _say_overlap(
    train: Iterable[tuple[bytes, bytes]], held_out: dict[str, Counter[tuple[bytes, bytes]]]
) -> None:
    """Says how many pairs there are, and how many of those held out are trained on, too."""
    trained, total = set(), 0
    for pair in train:
        total += 1
        if any(pair in pairs for pairs in held_out.values()):
            trained.add(pair)
    say(f"train: {total:,} pairs")
    for split, pairs in held_out.items():
        both = sum(pairs[pair] for pair in trained)
        say(f"{split}: {pairs.total():,} pairs, {both:,} of them in train, too")
