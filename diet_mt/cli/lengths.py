"""How translations fare by the length of the source, and from the first word to the last.

    diet-mt lengths results/multi30k.en-de.jsonl --references data/multi30k.en-de/raw/test.de
    ... --systems sinusoidal diet_rel --buckets 4 --train data/multi30k.en-de/raw/train.de
    ... --sources data/newstest.en-de/bpe/test.en --width 10 --trained-to 50 --out lengths.svg
    diet-mt lengths results/*.jsonl --references raw/test*.de --by-test-set

By bucket of source length BLEU, chrF (SacreBLEU's, of the sentences in the bucket), BLEU above that
of sinusoidal under the same conditions, each resample of the same sentences, and the length ratio:
tokens of the hypotheses for each token of the references. By tenth of the reference, word
accuracy. With --train, the recall of words by how often they stand in the training text. Lengths
count what spaces separate in the sources: words, or subwords where bpe/test.en is given. Buckets of
too few sentences are merged. The 95 % intervals are ours, of 1,000 resamples of the sentences in
the bucket. Of several seeds of a system values are means, and each resample is the same for all;
the intervals do not cover the choice of the seed.

A row finds its references among the given ones by checksum, and their sources beside them.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from ..command_line import Parser, positive
from ..errors import UserError
from ._tables import format_argument, show

PICTURES = (".png", ".svg")


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("results", type=Path, nargs="+", metavar="FILE", help="rows: results/CORPUS.jsonl")
    add("--references", type=Path, nargs="+", required=True, help="raw references of the test sets")
    add("--sources", type=Path, nargs="+", default=[], metavar="FILE",
        help="of the references, in their order (default: test.en beside test.de)")  # fmt: skip
    add("--systems", nargs="+", default=[], metavar="NAME",
        help="only these: diet_rel ...; compared with sinusoidal even so")  # fmt: skip
    how = parser.add_mutually_exclusive_group().add_argument
    how("--width", type=positive, default=5, metavar="N", help="lengths in a bucket (default 5)")
    how("--buckets", type=positive, default=0, metavar="N",
        help="so many, of about as many sentences each")  # fmt: skip
    how("--by-test-set", action="store_true",
        help="a table for each direction, each test set a bucket of its own")  # fmt: skip
    add("--least", type=positive, metavar="N",
        help="sentences; buckets of fewer are merged (default 100)")  # fmt: skip
    add("--trained-to", type=positive, metavar="N",
        help="length of the longest source of training, in what the sources count")  # fmt: skip
    add("--train", type=Path, metavar="FILE", help="target side of the training text: rare words")
    format_argument(parser)
    add("--out", type=Path, metavar="FILE", help="a picture, too: .png or .svg")


def run(args: argparse.Namespace) -> None:
    if args.out and args.out.suffix not in PICTURES:
        raise UserError(f"--out {args.out}: name a picture, {' or '.join(PICTURES)}")
    for option, value in (
        ("--train", args.train),
        ("--trained-to", args.trained_to),
        ("--least", args.least),
    ):
        if value and args.by_test_set:
            raise UserError(f"{option}: not with --by-test-set")
    from ..evaluation.lengths import LEAST, parts_of
    from ..report.lengths import blocks_of, picture, sheets_of
    from ..report.style import save

    cut = partial(parts_of, width=args.width, count=args.buckets, least=args.least or LEAST)
    sheets = sheets_of(
        args.results,
        args.references,
        args.sources,
        systems=args.systems,
        cut=None if args.by_test_set else cut,
        training=args.train,
        trained_to=args.trained_to,
    )
    show(blocks_of(sheets), args.format)
    if args.out:
        save(picture(sheets), args.out)
