"""The news test sets of past years as a small training corpus.

A year comes from a folder of the user's, ``newstestYYYY.en-de.{en,de}``, gzipped or not, or from
SacreBLEU. Command: ``python -m diet_mt.corpora.newstest --out DIR [--folder DIR] --train YEARS
--valid YEAR --test YEAR SRC TGT``
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from ..command_line import run
from ..errors import UserError
from ..files import make_folder, write_lines
from ..stages.progress import say
from .parallel import SPLITS, read_parallel

# The whole set of 2014: SacreBLEU's plain wmt14 is a selection.
_OF_SACREBLEU = {2014: "wmt14/full"}


def from_folder(folder: Path, year: int, langs: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Yields the pairs of a year, read strictly.

    Raises:
        UserError: as ``read_parallel``; or the folder has not the year.
    """
    files = []
    for lang in langs:
        name = f"newstest{year}.{'-'.join(langs)}.{lang}"
        found = [path for path in (folder / name, folder / f"{name}.gz") if path.is_file()]
        if not found:
            raise UserError(
                f"{folder}: holds neither {name} nor {name}.gz; add it, or ask for other years"
            )
        files.append(found[0])
    return read_parallel(*files)


def from_sacrebleu(year: int, langs: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Yields the pairs of a year. Raises UserError as ``testset.sentences``."""
    from .testset import sentences  # SacreBLEU is not needed where there is a folder

    name = _OF_SACREBLEU.get(year, f"wmt{year % 100:02d}")
    return zip(*sentences(name, "-".join(langs)), strict=True)


def write(
    out: Path, folder: Path | None, splits: dict[str, list[int]], langs: tuple[str, str]
) -> None:
    """Writes ``out/SPLIT.LANG`` from the years of each split.

    Raises:
        UserError: a year is in two splits; or as the readers above.
    """
    asked = [*chain.from_iterable(splits.values())]
    twice = sorted({year for year in asked if asked.count(year) > 1})
    if twice:
        raise UserError(f"newstest{twice[0]}: asked for twice; a year serves one purpose")
    make_folder(out)
    for split, wanted in splits.items():
        pairs: list[tuple[str, str]] = []
        for year in wanted:
            pairs += from_folder(folder, year, langs) if folder else from_sacrebleu(year, langs)
        for lang, side in zip(langs, zip(*pairs, strict=True), strict=True):
            write_lines(out / f"{split}.{lang}", side)
        say(f"{split}: {len(pairs):,} pairs of {', '.join(map(str, wanted))}")


def years(text: str) -> list[int]:
    """``2008-2010,2012`` as a list. Raises UserError where it is not written so."""
    found: list[int] = []
    for part in text.split(","):
        span = re.fullmatch(r"(\d{4})(?:-(\d{4}))?", part)
        wanted = range(int(span[1]), int(span[2] or span[1]) + 1) if span else range(0)
        if not wanted:
            raise UserError(f"'{text}' is no list of years; write them as 2008-2015,2017")
        found += wanted
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="diet_mt.corpora.newstest", description="news, small")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--folder", type=Path, help="holds newstestYYYY.SRC-TGT.LANG[.gz]")
    parser.add_argument("--train", required=True, help="years, such as 2008-2015")
    parser.add_argument("--valid", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("langs", nargs=2, metavar="LANG")
    args = parser.parse_args(argv)

    def body() -> None:
        splits = {split: years(getattr(args, split)) for split in SPLITS}
        write(args.out, args.folder, splits, (args.langs[0], args.langs[1]))

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
