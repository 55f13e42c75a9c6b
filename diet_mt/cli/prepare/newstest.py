"""Ten years of WMT's news test sets: a small corpus of real news, for a small machine.

    diet-mt prepare newstest en-de --from news           newstest2008.en-de.en, or .en.gz, ...
    diet-mt prepare newstest en-cs                       all from SacreBLEU

2008 to 2015 to train on, 2017 to validate, 2016 to test; with --test-year 2018, 2016 is trained on,
too. Takes a minute and 60 MB. Licence: free for research.
"""

from __future__ import annotations

import argparse

from ...command_line import Parser
from .options import add_common, add_folder, add_pair, add_text, carry_out, out_of, text_of


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add_pair(parser, ("en-de", "en-cs"), "en-de or en-cs")
    add_common(parser, "data/newstest.PAIR")
    add_folder(parser, "folder of newstestYYYY.PAIR.LANGUAGE, plain or .gz (default: SacreBLEU)")
    add(
        "--train-years",
        metavar="YEARS",
        help="such as 2008-2013,2015 (default 2008-2015; 2008-2016 unless that is the test year)",
    )
    add("--valid-year", default="2017", metavar="YEAR", help="default 2017")
    add("--test-year", default="2016", metavar="YEAR", help="default 2016")
    add_text(parser, clean=True)


def run(args: argparse.Namespace) -> None:
    from ...corpora.recipes import newstest

    text, out = text_of(args, args.pair), out_of(args, f"newstest.{args.pair}")
    train = args.train_years or ("2008-2015" if args.test_year == "2016" else "2008-2016")
    years = {"train": train, "valid": args.valid_year, "test": args.test_year}
    carry_out(newstest(out, text, args.folder, years), args.dry_run)
