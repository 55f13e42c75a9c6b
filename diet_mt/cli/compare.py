"""How sure the differences are: a paired bootstrap test of every two systems, over their seeds.

    diet-mt compare results/*.jsonl --references data/multi30k.en-de/raw/test.de
    diet-mt compare results/multi30k.en-de.jsonl --references test.de --systems rotary diet_rel

BLEU, mean of a system's seeds, over 10,000 resamples. Each draws as many sentences as the test set
has, with replacement and the same for all systems, and adds to each system the chance of its seeds,
by the variance between seeds of all systems that have several; where none has, that is the usual
bootstrap over sentences. p is two-sided, 0.0001 at the least. The line of a pair has the difference
with half of its 95 % interval, p, and how many seeds each has. Beside each CORPUS.jsonl the outcome
is kept in significance/CORPUS.jsonl, where the leaderboard finds it. With --systems A B, A is
tested against B, and nothing is kept.

References are not kept with the results: a row finds its own by checksum, and one whose references
are not given stays without a p-value.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..command_line import Parser


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("results", type=Path, nargs="+", metavar="FILE", help="rows: results/CORPUS.jsonl")
    add("--references", type=Path, nargs="+", required=True, help="raw references of the test sets")
    add("--systems", nargs=2, metavar=("A", "B"), help="A against B (default: every pair)")
    add("--dry-run", action="store_true", help="only list what would be compared")


def run(args: argparse.Namespace) -> None:
    import logging

    from ..evaluation.kept import read_references
    from ..evaluation.significance import compare_files

    logging.getLogger("sacrebleu").setLevel(logging.WARNING)
    references = read_references(args.references)
    compare_files(args.results, references, args.systems, dry_run=args.dry_run)
