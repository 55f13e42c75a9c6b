"""Answers questions with a fine-tuned checkpoint.

    diet-mt answer data/qa CHECKPOINT --split valid test_xquad_de --out answers
    diet-mt answer data/qa CHECKPOINT --file questions.json --out answers/mine

The questions are splits of the prepared data, or a file in SQuAD's JSON, which is cut as the
training questions were. Writes predictions.json, nbest.json and, for SQuAD 2.0, null_odds.json to
the folder --out, for splits to folders of their names within; where there are gold answers, prints
F1 and exact match and, with --results, keeps them as a line of RESULTS/TASK.jsonl for each split.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..bert.squad import SCORINGS
from ..command_line import Parser, filled, finite, need_file, positive
from ._task_record import record_arguments


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("data", type=Path, help="folder made by diet-mt prepare qa")
    add("checkpoint", type=Path, help="fine-tuned by diet-mt finetune")
    questions = parser.add_mutually_exclusive_group(required=True)
    questions.add_argument("--split", nargs="+", help="valid, test_xquad_de, ...")
    questions.add_argument("--file", type=Path, help="SQuAD's JSON, plain or gzipped")
    add("--language", default="", metavar="XX", help="of --file: en, de, ...")
    add("--scoring", choices=SCORINGS, default="squad", help="of --file (default squad)")
    add("--out", type=Path, required=True, metavar="FOLDER", help="folder for the answers")
    add("--max-answer", type=positive, metavar="N", help="subwords (default: as in training)")
    add("--n-best", type=positive, default=20, metavar="N", help="answers to list (default 20)")
    add(
        "--threshold",
        type=finite,
        default=0.0,
        metavar="ODDS",
        help="where questions can be impossible: odds of no answer above which there is none; "
        "diet-mt verify --null-odds finds the best ones (default 0)",
    )
    add("--task", metavar="NAME", help="in the record (default: by the split)")
    record_arguments(parser)
    add("--batch-size", type=positive, default=32, help="windows at a time (default 32)")
    add("--dry-run", action="store_true", help="only list what would be written")


def run(args: argparse.Namespace) -> None:
    for path, what in ((args.checkpoint, "checkpoint"), (args.file, "file")):
        if path:
            need_file(path, what)
    if args.dry_run:
        for split in args.split or [""]:
            print(args.out / split / "predictions.json")
        return
    from ..evaluation.answer import AnswerRequest, answer_sets

    answer_sets(filled(AnswerRequest, args), args.split or [])
