"""One task of GLUE, or all of them, as subwords of a pretrained model and in fairseq's form.

    diet-mt prepare glue CoLA --from glue --vocab data/mlm.en/bin
    diet-mt prepare glue all --from glue --vocab data/mlm.en/bin --out data/glue

Reads the official files, TASK/*.tsv, plain or .gz, from gluebenchmark.com. Makes raw, pieces,
input0, input1 and label: splits train, valid, test; MNLI's mismatched sets are valid1 and test1.
Test files have no labels, as published. Takes seconds, for MNLI some minutes; 2 GB for all.
Licence: each task's own; most are for research alone.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ...bert.glue import TASKS, task_named
from ...bert.labelled import REFUSE, SKIP
from ...command_line import Parser, filled, positive
from .options import add_common, add_folder, carry_out, setting

MAX_LENGTH = 128


def add_labelled(parser: Parser, max_length: int) -> None:
    """What GLUE and XNLI share."""
    add = parser.add_argument
    what = "bin folder that diet-mt prepare mlm made"
    add("--vocab", type=Path, required=True, metavar="FOLDER", help=what)
    length = "tokens of an example with its marks; longer ones are cut"
    setting(add, "--max-length", positive, max_length, length)
    what = "skip: leave out rows that are not as they should be (default refuse)"
    add("--bad-rows", choices=(REFUSE, SKIP), default=REFUSE, help=what)


def arguments(parser: Parser) -> None:
    parser.add_argument(
        "task", choices=(*TASKS, "all"), metavar="TASK", help=f"{', '.join(TASKS)}, or all"
    )
    add_folder(parser, "folder of the official files, with TASK/train.tsv", required=True)
    add_common(parser, "data/glue/TASK; with all: data/glue")
    add_labelled(parser, MAX_LENGTH)


def run(args: argparse.Namespace) -> None:
    from ...bert.labelled_stages import LabelledSettings, preparation_of_glue

    given = filled(LabelledSettings, args)
    above = Path("data/glue")
    if args.task == "all":
        outs = {name: (args.out or above) / name for name in TASKS}
    else:
        outs = {args.task: args.out or above / args.task}
    found = [preparation_of_glue(out, task_named(n), args.folder, given) for n, out in outs.items()]
    for preparation in found:
        carry_out(preparation, args.dry_run)
