"""WMT18 news, German or Czech with English: the training data of Table 4 of the paper.

    diet-mt prepare wmt18 de-en
    diet-mt prepare wmt18 cs-en --subwords spm --from archives

Europarl v7, Common Crawl and News Commentary v13, cleaned (counts in clean.tsv), to train on;
newstest2017 to validate; newstest2018 to test. One preparation serves both directions. de-en takes
1.7 GB of downloads, 10 GB of disk, 4 GB of memory and an estimated hour on two cores after the
downloads, extrapolated from a million made-up pairs; cs-en a quarter of it. Licence: free for
research, see statmt.org/wmt18/translation-task.html.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ...command_line import Parser
from .options import add_common, add_source, add_text, carry_out, out_of, source_of, text_of


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("pair", choices=("de-en", "cs-en"), metavar="PAIR", help="de-en or cs-en")
    add_common(parser, "data/wmt18.PAIR, data/wmt18.PAIR.spm")
    add_source(parser, "SacreBLEU's as test.tgz")
    add(
        "--downloads",
        type=Path,
        default=Path("data/wmt18.archives"),
        metavar="FOLDER",
        help="takes what is downloaded, for both pairs (default data/wmt18.archives)",
    )
    # The dictionary as in fairseq's WMT recipes.
    add_text(parser, size=32000, dictionary=32768, clean=True)


def run(args: argparse.Namespace) -> None:
    from ...corpora.archives import wmt18

    text, out = text_of(args, args.pair), out_of(args, f"wmt18.{args.pair}")
    source = source_of(args, "wmt18")
    carry_out(wmt18(out, text, source, args.downloads), args.dry_run)
