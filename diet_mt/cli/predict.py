"""Classifies with a fine-tuned checkpoint: GLUE, XNLI.

    diet-mt predict data/glue/CoLA checkpoints/cola/checkpoint_best.pt --results results/tasks
    diet-mt predict data/glue/MNLI CHECKPOINT --split test test1 --predictions FOLDER

Prints a line for each split: where the labels are known, with the task's metrics, which --results
keeps in RESULTS/TASK.jsonl. Predictions go to FOLDER/SPLIT.tsv, or for a test set of GLUE to the
file that its server asks for (MNLI-mm.tsv). They have GLUE's form, index<TAB>prediction, and a
third column with the labels where they are known.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..command_line import Parser, filled, need_file, positive
from ._task_record import record_arguments


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("data", type=Path, help="folder made by diet-mt prepare glue or xnli")
    add("checkpoint", type=Path, help="fine-tuned by diet-mt finetune")
    add(
        "--split",
        nargs="+",
        default=["valid"],
        help="one or more (default valid); dev: all dev sets",
    )
    add("--task", help="CoLA, MNLI, XNLI, ... (default: the data folder's name)")
    add("--predictions", type=Path, metavar="FOLDER", help="folder to write them to")
    record_arguments(parser)
    add("--batch-size", type=positive, default=64, help="examples at a time (default 64)")
    add("--dry-run", action="store_true", help="only list what would be written")


def run(args: argparse.Namespace) -> None:
    from ..evaluation.predict import PredictRequest, predict_splits, specification

    args.task = task = args.task or args.data.absolute().name
    found = specification(task)
    need_file(args.checkpoint, "checkpoint")
    splits = [s for word in args.split for s in (found.dev_splits if word == "dev" else [word])]
    asked = filled(PredictRequest, args)
    if args.dry_run:
        rows = [args.results / f"{task}.jsonl"] if args.results else []
        for split in splits:
            file = asked.file(split)
            print("\t".join([task, split, *map(str, [*([file] if file else []), *rows])]))
    else:
        predict_splits(asked, splits)
