"""Captions, news and LibreOffice's texts as one corpus, with a test set of each domain.

``train``, ``valid`` and ``test`` are those of Multi30k, of the news test sets and of office, one
after the other; ``raw/captions``, ``raw/news`` and ``raw/office`` are the parts of ``test``. News
of 2008 to 2014 to train on, 2015 to validate, 2016 and 2017 to test.
"""

from __future__ import annotations

import shutil
from itertools import chain
from pathlib import Path

from ..files import write_lines
from ..stages.engine import Preparation, Stage
from . import multi30k, newstest, office
from .fetch import Origin
from .parallel import SPLITS, read_lines
from .settings import TextSettings
from .shared_stages import prepared

# The larger test set shows smaller differences: 2017, too.
_YEARS = {"train": "2008-2014", "valid": "2015", "test": "2016-2017"}


def preparation(out: Path, text: TextSettings, folder: Path | None) -> Preparation:
    """``folder/multi30k``, ``news`` and ``office``, or downloads -> ``out/bin``. Raises UserError
    as the preparations of the three.
    """
    parts = {}
    if not (out / "raw").exists():  # later the folder may be gone
        captions = Origin(multi30k.MANIFEST, folder and folder / "multi30k", multi30k.URL)
        programs = Origin(office.MANIFEST, folder and folder / "office")
        parts["captions"] = multi30k.preparation(out, text, captions)
        parts["news"] = newstest.preparation(out, text, folder and folder / "news", _YEARS)
        parts["office"] = office.preparation(out, text, programs)

    def make_raw(to: Path) -> None:
        for name, part in parts.items():
            part.stages[0].make(to / name)
        for lang in text.pair:
            for split in SPLITS:
                sides = (read_lines(to / name / f"{split}.{lang}") for name in parts)
                write_lines(to / f"{split}.{lang}", chain.from_iterable(sides))
            for name in parts:
                write_lines(to / f"{name}.{lang}", read_lines(to / name / f"test.{lang}"))
        for name in parts:
            shutil.rmtree(to / name)

    does = f"captions, news and office from {folder or 'the web'}"
    return prepared(out, [Stage("raw", does, make_raw)], text)
