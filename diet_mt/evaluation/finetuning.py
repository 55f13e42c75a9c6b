"""The options of fairseq-train that belong to a task and to a pretrained checkpoint.

    python -m diet_mt.evaluation.finetuning TASK CHECKPOINT [--system diet-rel]

prints them, one word on a line, for ``scripts/finetune.sh``: the architecture of the pretrained
model, the number of classes, what is measured and by what the best checkpoint is known.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from ..bert.glue import Task
from ..bert.xnli import ENGLISH, split_name
from ..bert.xnli import NAME as XNLI
from ..command_line import run
from .answer import SQUAD
from .predict import specification
from .pretrained import model_options


def task_options(task: Task) -> list[str]:
    """What the task and the criterion ``diet_sentence_prediction`` have to know of a task."""
    return [
        *("--num-classes", str(task.classes)),
        *(["--regression-target"] if task.labels.is_score else []),
        *("--metrics", " ".join(task.metrics)),
        *("--best-checkpoint-metric", task.main_metric),
    ]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="diet_mt.evaluation.finetuning", description="fairseq's options"
    )
    parser.add_argument("task", help="CoLA, MNLI, XNLI, ...")
    parser.add_argument("checkpoint", type=Path, help="pretrained")
    parser.add_argument("--system", default="", help="encoding that it must have")
    args = parser.parse_args(argv)
    logging.getLogger("fairseq").setLevel(logging.WARNING)

    def body() -> None:
        words = model_options(args.checkpoint, args.system)
        if args.task == SQUAD:
            words += ["--best-checkpoint-metric", "f1"]
        else:
            words += task_options(specification(args.task))
        # Zero-shot transfer knows nothing but English before its test.
        if args.task == XNLI:
            words += ["--valid-subset", split_name("valid", ENGLISH)]
        for word in words:
            print(word)

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
