"""Fine-tunes a pretrained encoder once on a task of GLUE, on XNLI or on SQuAD, by a recipe.

    diet-mt finetune data/glue/CoLA checkpoints/mlm/diet_rel.1/checkpoint_best.pt --recipe glue \\
        --lr 2e-5 --max-epoch 10 --seed 1 --save-dir checkpoints/CoLA/diet_rel.1
    ... --segments input                where the segments of a pair enter (default: the recipe's)
    ... --dry-run                       prints the command, does nothing

DATA is made by diet-mt prepare glue, xnli or qa, CHECKPOINT by diet-mt pretrain. Keeps
checkpoint_best.pt, by the task's main metric on its (first) dev set. Any option of fairseq-train
may be given, over the recipe's. Run again, it continues; finished, it does nothing. A tiny model
on CoLA takes some 20 seconds an epoch on one core.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..command_line import Parser
from ._training import SEGMENTS, add_arguments, carry_out, request_of


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("data", type=Path, help="made by diet-mt prepare glue, xnli or qa")
    add("checkpoint", type=Path, help="pretrained")
    add("--segments", dest="segment_encoding", choices=SEGMENTS,
        help="where they enter (default: the recipe's)")  # fmt: skip
    add("--task", default="", help="CoLA, XNLI, SQuAD, ... (default: the name of DATA)")
    add("--system", default="", help="encoding that the checkpoint must have (default: any)")
    add("--gpus", default="auto", choices=("auto", "0", "1"), help="0: the CPU (default auto)")
    add_arguments(parser)


def run(args: argparse.Namespace) -> None:
    from ..evaluation.fairseq_options import import_fairseq

    request = request_of(args)
    import_fairseq()
    from ..training.task_heads import fine_tuning

    training = fine_tuning(args.data, args.checkpoint, request, task=args.task, system=args.system)
    carry_out(training, args)
