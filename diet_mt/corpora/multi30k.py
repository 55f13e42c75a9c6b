"""Multi30k, task 1 (image captions): any pair of English, German and Czech.

Elliott, Frank, Sima'an and Specia (2016), arXiv:1605.00459. The test set is test_2016_flickr.
"""

from __future__ import annotations

import shutil
from itertools import permutations
from pathlib import Path

from ..files import copy, make_folder
from ..stages.engine import Preparation, Stage
from .fetch import Origin, fetch
from .parallel import check
from .settings import TextSettings

PAIRS = tuple("-".join(pair) for pair in permutations(("en", "de", "cs"), 2))
MANIFEST = Path(__file__).with_suffix(".manifest")
URL = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
_ORIGINAL = {"train": "train", "valid": "val", "test": "test_2016_flickr"}


def preparation(out: Path, text: TextSettings, origin: Origin) -> Preparation:
    """The six files of a pair -> ``out/bin``. Raises UserError where the folder lacks one."""
    from .shared_stages import prepared

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
        shutil.rmtree(out / "fetched")

    return prepared(out, [Stage("raw", does, make_raw)], text)
