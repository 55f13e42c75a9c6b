"""Captions, news and LibreOffice's texts as one corpus, with one vocabulary.

    diet-mt prepare mixed en-de --from FOLDER            of FOLDER/multi30k, news and office
    diet-mt prepare mixed en-cs                          all downloaded

81,000 pairs to train on; 8,900 to test, with raw/captions, raw/news and raw/office as its parts.
News of 2008 to 2014 to train on, 2015 to validate, 2016 and 2017 to test. Takes three minutes and
200 MB. Licence: that of each of the three; for research.
"""

from __future__ import annotations

import argparse

from ...command_line import Parser
from .options import add_common, add_folder, add_pair, add_text, carry_out, out_of, text_of


def arguments(parser: Parser) -> None:
    add_pair(parser, ("en-de", "en-cs"), "en-de or en-cs")
    add_common(parser, "data/mixed.PAIR")
    add_folder(parser, "folder of multi30k, news and office (default: all are downloaded)")
    add_text(parser, size=8000, clean=True)


def run(args: argparse.Namespace) -> None:
    from ...corpora.recipes import mixed

    text, out = text_of(args, args.pair), out_of(args, f"mixed.{args.pair}")
    carry_out(mixed(out, text, args.folder), args.dry_run)
