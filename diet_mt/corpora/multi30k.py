"""Multi30k, task 1 (image captions): any pair of English, German and Czech.

Elliott, Frank, Sima'an and Specia (2016), arXiv:1605.00459. The test set is test_2016_flickr.

Captions can be joined to texts that are several times as long: for ``joined`` N there are further
test sets ``raw/testK``, K from 2 to N, of which each line is the next K captions of the test set.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from itertools import cycle, islice, repeat
from pathlib import Path

from ..files import copy, make_folder, write_lines
from ..stages.engine import Preparation, Stage
from .fetch import Origin, fetch
from .parallel import check, read_lines
from .settings import TextSettings
from .shared_stages import prepared

MANIFEST = Path(__file__).with_suffix(".manifest")
URL = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
_ORIGINAL = {"train": "train", "valid": "val", "test": "test_2016_flickr"}


def preparation(
    out: Path, text: TextSettings, origin: Origin, joined: int = 1, *, in_training: bool = False
) -> Preparation:
    """The six files of a pair -> ``out/bin``. Raises UserError where the folder lacks a file.

    Args:
        joined: captions in the longest lines of the further test sets.
        in_training: train and valid have lines of 1 to ``joined`` captions in turn, too, each
            caption once.
    """
    names = [f"{name}.{lang}" for name in _ORIGINAL.values() for lang in text.pair]
    does = f"{', '.join(names)} from {origin.folder or origin.url}"
    if not (out / "raw").exists():
        origin.items(names)

    def make_raw(to: Path) -> None:
        found = fetch(origin, names, out / "fetched")
        make_folder(to)
        for split, name in _ORIGINAL.items():
            for lang in text.pair:
                copy(found[f"{name}.{lang}"], to / f"{split}.{lang}")
        check(to, *text.pair)
        for lang in text.pair:
            for count in range(2, joined + 1):
                lines = joined_lines(read_lines(to / f"test.{lang}"), repeat(count))
                write_lines(to / f"test{count}.{lang}", lines)
            for split in ("train", "valid") if in_training else ():
                file = to / f"{split}.{lang}"
                write_lines(file, joined_lines(read_lines(file), cycle(range(1, joined + 1))))
        shutil.rmtree(out / "fetched")

    more = f"joined={joined}{'+training' if in_training else ''}" if joined > 1 else ""
    return prepared(out, [Stage("raw", does, make_raw)], text, more)


def joined_lines(lines: Iterable[str], counts: Iterable[int]) -> Iterator[str]:
    """The next lines, so many as ``counts`` says, as one; a rest that is fewer is left out."""
    left = iter(lines)
    for count in counts:
        found = list(islice(left, count))
        if len(found) < count:
            return
        yield " ".join(found)
