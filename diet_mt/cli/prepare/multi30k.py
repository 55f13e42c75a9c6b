"""Multi30k (image captions) for translation, any pair of English, German and Czech.

    diet-mt prepare multi30k                             English to German, downloaded
    diet-mt prepare multi30k cs-en --from FOLDER         from train.cs, val.cs.gz, ... of a folder
    diet-mt prepare multi30k --join 4                    also raw/test2 to test4: so many in a line

Makes raw (the untouched sentences), tok, bpe.codes, bpe, and bin, what fairseq-train reads. Takes
half a minute and 30 MB. The test set is test_2016_flickr. Licence: the source carries none; the
captions derive from Flickr30k, for research use.
"""

from __future__ import annotations

import argparse

from ...command_line import Parser, positive
from ...errors import UserError
from .options import (
    add_common,
    add_pair,
    add_source,
    add_text,
    carry_out,
    out_of,
    source_of,
    text_of,
)

PAIRS = ("en-de", "de-en", "en-cs", "cs-en", "de-cs", "cs-de")


def arguments(parser: Parser) -> None:
    add_pair(parser, PAIRS, "source and target: two of en, de, cs")
    add_common(parser, "data/multi30k.PAIR")
    add_source(parser, "plain or .gz")
    add = parser.add_argument
    add("--join", type=positive, default=1, metavar="N",
        help="further test sets, raw/test2 to testN, of so many captions in a line")  # fmt: skip
    add("--join-training", action="store_true",
        help="train and valid have 1 to N captions in a line in turn, too")  # fmt: skip
    add_text(parser)


def run(args: argparse.Namespace) -> None:
    if args.join_training and args.join == 1:
        raise UserError("--join-training: also give --join N")
    from ...corpora.recipes import multi30k

    text, out = text_of(args, args.pair), out_of(args, f"multi30k.{args.pair}")
    source = source_of(args, "multi30k")
    what = multi30k(out, text, source, args.join, in_training=args.join_training)
    carry_out(what, args.dry_run)
