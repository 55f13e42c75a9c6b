"""The news test sets of past years as a small training corpus.

A year comes from a folder of the user's, ``newstestYYYY.en-de.{en,de}``, gzipped or not, or from
SacreBLEU.
"""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

from ..errors import UserError
from ..files import make_folder, plain_or_gz, write_lines
from ..stages.engine import Preparation, Stage
from ..stages.progress import say
from . import testset
from .parallel import check, read_parallel
from .settings import TextSettings
from .shared_stages import prepared

# The whole set of 2014: SacreBLEU's plain wmt14 is a selection.
_OF_SACREBLEU = {2014: "wmt14/full"}


def preparation(
    out: Path, text: TextSettings, folder: Path | None, years: dict[str, str]
) -> Preparation:
    """``years`` of each split, as 2008-2015,2017. Raises UserError where a year is asked for twice,
    or written otherwise; the folder lacks one.
    """
    wanted = {split: years_in(given) for split, given in years.items()}
    asked = [*chain.from_iterable(wanted.values())]
    twice = sorted({year for year in asked if asked.count(year) > 1})
    if twice:
        raise UserError(f"newstest{twice[0]}: asked for twice; a year serves one purpose")
    if folder is not None and not (out / "raw").exists():
        for year in asked:
            files_of(folder, year, text.pair)

    def make_raw(to: Path) -> None:
        write(to, folder, wanted, text.pair)
        check(to, *text.pair)

    does = f"newstest of {years['train']} to train on, {years['valid']} and {years['test']}"
    more = f"years={years['train']}+{years['valid']}+{years['test']}"
    return prepared(out, [Stage("raw", does, make_raw)], text, more)


def files_of(folder: Path, year: int, langs: tuple[str, str]) -> list[Path]:
    """The two sides of a year. Raises UserError where the folder lacks one."""
    names = [f"newstest{year}.{'-'.join(langs)}.{lang}" for lang in langs]
    return [plain_or_gz(folder, name, "add it, or ask for other years") for name in names]


def write(
    out: Path, folder: Path | None, splits: dict[str, list[int]], langs: tuple[str, str]
) -> None:
    """Writes ``out/SPLIT.LANG`` from the years of each split. Raises UserError as ``files_of`` and
    ``read_parallel``, or as ``testset.sentences``.
    """
    make_folder(out)
    for split, wanted in splits.items():
        pairs: list[tuple[str, str]] = []
        for year in wanted:
            if folder is not None:
                pairs += read_parallel(*files_of(folder, year, langs))
            else:
                name = _OF_SACREBLEU.get(year, f"wmt{year % 100:02d}")
                pairs += zip(*testset.sentences(name, "-".join(langs)), strict=True)
        for lang, side in zip(langs, zip(*pairs, strict=True), strict=True):
            write_lines(out / f"{split}.{lang}", side)
        say(f"{split}: {len(pairs):,} pairs of {', '.join(map(str, wanted))}")


def years_in(text: str) -> list[int]:
    """``2008-2010,2012`` as a list. Raises UserError where it is not written so."""
    found: list[int] = []
    for part in text.split(","):
        span = re.fullmatch(r"(\d{4})(?:-(\d{4}))?", part)
        wanted = range(int(span[1]), int(span[2] or span[1]) + 1) if span else range(0)
        if not wanted:
            raise UserError(f"'{text}' is no list of years; write them as 2008-2015,2017")
        found += wanted
    return found
