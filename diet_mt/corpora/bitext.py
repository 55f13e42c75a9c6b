"""Parallel text of the user's: ``train``, ``valid`` and ``test`` of two languages in a folder."""

from __future__ import annotations

import shlex
from pathlib import Path

from ..files import make_folder, need_once, plain_or_gz, raw_lines, writing_bytes
from ..stages.engine import Preparation, Stage
from ..stages.progress import say
from .parallel import SPLITS, paired, read_parallel
from .settings import TextSettings
from .shared_stages import prepared


def preparation(out: Path, text: TextSettings, folder: Path) -> Preparation:
    """``folder/SPLIT.LANGUAGE``, plain or .gz -> ``out/bin``. Raises UserError where the folder
    lacks a file, or one stands there under two names.
    """

    def sides_of(split: str) -> tuple[Path, Path]:
        source, target = (plain_or_gz(folder, f"{split}.{lang}") for lang in text.pair)
        return source, target

    if not (out / "raw").exists():
        need_once([side for split in SPLITS for side in sides_of(split)])

    def make_raw(to: Path) -> None:
        make_folder(to)
        for split in SPLITS:
            sides = sides_of(split)
            # What is cleaned next may have invalid lines, but as many on either side.
            cleaned = split == "train" and text.clean is not None
            pairs = paired(*sides, raw_lines) if cleaned else read_parallel(*sides)
            say(f"{split}: {sum(1 for _ in pairs):,} pairs")
            for lang, side in zip(text.pair, sides, strict=True):
                with writing_bytes(to / f"{split}.{lang}") as file:
                    file.writelines(raw_lines(side))

    does = f"{', '.join(SPLITS)} of {' and '.join(text.pair)} from {folder}"
    more = f"from={shlex.quote(str(folder.resolve()))}"
    return prepared(out, [Stage("raw", does, make_raw)], text, more)
