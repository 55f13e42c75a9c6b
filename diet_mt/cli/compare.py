"""Significance of the differences: a paired bootstrap test of every two systems, over their seeds.

    diet-mt compare results/*.jsonl
    diet-mt compare results/multi30k.en-de.jsonl --systems rotary diet_rel
    diet-mt compare results/old.jsonl --references data/multi30k.en-de/raw/test.de
    diet-mt compare results/mine.jsonl --systems rotary diet_rel --show 10

BLEU, mean of a system's seeds, over 10,000 resamples. Each draws as many sentences as the test set
has, with replacement and the same for all systems, and adds to each system the chance of its seeds,
by the variance between seeds of all systems that have several; where none has, that is the usual
bootstrap over sentences. p is two-sided, 0.0001 at the least. The line of a pair has the difference
with half of its 95 % interval, p, and the number of seeds of each.

Everything is computed from the n-gram counts that diet-mt evaluate writes to
sentences/CORPUS.jsonl. --references adds counts of rows without them: references are matched to
rows by checksum. --show also prints the sentences on which the first seeds of two systems differ
most, with sources and references where --references are given.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..command_line import Parser, positive
from ..errors import UserError


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("results", type=Path, nargs="+", metavar="FILE", help="rows: results/CORPUS.jsonl")
    add("--references", type=Path, nargs="+", default=[], help="raw references, for rows without "
        "sentence counts")  # fmt: skip
    add("--systems", nargs=2, metavar=("A", "B"), help="A against B (default: every pair)")
    add("--show", type=positive, metavar="N", help="sentences that differ most, with --systems")


def run(args: argparse.Namespace) -> None:
    import logging

    from ..evaluation.sentences import count_rows
    from ..evaluation.significance import compare_files, show_sentences

    if args.show and not args.systems:
        raise UserError("--show: give two --systems")

    logging.getLogger("sacrebleu").setLevel(logging.WARNING)
    if args.references:
        count_rows(args.results, args.references)
    compare_files(args.results, args.systems)
    if args.show:
        show_sentences(args.results, args.systems, args.show, args.references)
