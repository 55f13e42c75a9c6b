"""XNLI for zero-shot transfer, as subwords of a multilingual model and in fairseq's form.

    diet-mt prepare xnli --from xnli --mnli glue --vocab data/mlm.multi/bin

Reads *.dev.tsv and *.test.tsv, plain or .gz: the official files of 19 columns, and any other
languages in the same layout; and MNLI/train.tsv of GLUE. Makes raw, pieces, input0, input1 and
label: train (MNLI's, in English), and valid_LANGUAGE and test_LANGUAGE, labels numbered as MNLI's.
Takes some minutes and 1.5 GB. Licence: XNLI: CC BY-NC 4.0; MNLI: OANC and others.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ...command_line import Parser, filled
from .glue import add_labelled
from .options import add_common, add_folder, carry_out

MAX_LENGTH = 512  # as in pretraining (Chen et al. 2021, table 7)


def arguments(parser: Parser) -> None:
    add_folder(parser, "folder of XNLI's files, with xnli.dev.tsv", required=True)
    parser.add_argument(
        "--mnli",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="folder of GLUE's official files, with MNLI/train.tsv",
    )
    add_common(parser, "data/XNLI")
    add_labelled(parser, MAX_LENGTH)


def run(args: argparse.Namespace) -> None:
    from ...bert.labelled_stages import LabelledSettings, preparation_of_xnli

    given = filled(LabelledSettings, args)
    out = args.out or Path("data/XNLI")
    carry_out(preparation_of_xnli(out, args.folder, args.mnli, given), args.dry_run)
