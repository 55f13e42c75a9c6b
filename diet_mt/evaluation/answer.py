"""Answers questions with a fine-tuned checkpoint.

    diet-mt answer DATA CHECKPOINT --split valid test_xquad_de --out answers
    diet-mt answer DATA CHECKPOINT --file questions.json --out answers/mine

DATA is made by data-prep/prepare-qa.sh. The questions are splits of it, or a file in SQuAD's JSON,
which is cut as DATA's training questions were. Writes ``predictions.json``, ``nbest.json`` and, for
SQuAD 2.0, ``null_odds.json`` to the folder ``--out``, for splits to folders of their names within;
where there are gold answers, prints F1 and exact match and, with ``--results``, keeps them as one
line of ``RESULTS/TASK.jsonl`` for each split.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..bert.answer_scores import score, scoring_of
from ..bert.questions.collections import NAMES
from ..bert.questions.decoding import N_BEST
from ..bert.questions.features import read_about
from ..bert.questions.predictions import Predictions
from ..bert.questions.prepare import SCORINGS, prepare
from ..command_line import Parser, run
from ..errors import UserError
from ..tasks._question_sets import QuestionSet
from .answering import Answerer, Decoding, answer, load_answerer
from .checkpoint import portable_file
from .fine_tuned import facts, quiet, train_command
from .task_records import TaskResult, put_task_result

SQUAD = "SQuAD"


def task_of(split: str) -> str:
    """``test_xquad_de`` -> ``XQuAD``; ``valid`` -> ``SQuAD``."""
    collection = split.split("_")[1] if split.count("_") > 1 else ""
    return NAMES.get(collection, collection) if collection else SQUAD


@contextmanager
def folder_of(args: argparse.Namespace, split: str) -> Iterator[Path]:
    """The folder of the prepared questions; one of a file exists for as long as it is needed."""
    if split:
        yield args.data / split
        return
    sizes = read_about(args.data / "train").sizes
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "questions"
        scoring = args.scoring
        prepare(args.file, args.data, folder, sizes, language=args.language, scoring=scoring)
        yield folder


def metrics_of(group: QuestionSet, predictions: Predictions) -> dict[str, float]:
    """Scores from 0 to 100; nothing where there are no gold answers."""
    if not all(each.has_gold for each in group.questions):
        return {}
    scoring = scoring_of(group.about.scoring, group.about.language, group.questions)
    return score(group.questions, predictions.texts, scoring).summary()


def make_result(
    args: argparse.Namespace,
    split: str,
    own: dict[str, Any],
    group: QuestionSet,
    metrics: dict[str, float],
    out: Path,
) -> TaskResult:
    """The record of one evaluation; ``own``: the facts about the checkpoint."""
    words = ["diet-mt", "answer", args.data.name, args.checkpoint.name]
    given = ["--split", split] if split else ["--file", group.about.name]
    limits = ["--max-answer", str(args.max_answer)]
    train = read_about(args.data / "train")
    return TaskResult(
        task=args.task or task_of(split),
        split=split or group.about.name,
        language=group.about.language,
        metrics=metrics,
        main_metric="f1",
        commands=[*train_command(args.checkpoint), shlex.join([*words, *given, *limits])],
        examples=group.about.questions,
        train_examples=train.questions,
        predictions=portable_file(out / "predictions.json"),
        notes=[
            f"trained on {train.name}",
            f"tested on {group.about.name}",
            f"scored as {group.about.scoring}",
        ],
        **own,
    )


def _answer_one(
    args: argparse.Namespace, answerer: Answerer, own: dict[str, Any], split: str
) -> str:
    """Answers one set, writes what is asked for and returns the line to print."""
    how = Decoding(args.max_answer, args.n_best, args.threshold)
    out = args.out / split
    with folder_of(args, split) as folder:
        group = answerer.task.question_set(split or "file", folder)
        windows = answerer.task.windows_of(group)
        predictions = answer(answerer, group, windows, how, args.batch_size)
        metrics = metrics_of(group, predictions)
    if args.results and not metrics:
        raise UserError(f"{group.about.name}: no gold answers; leave --results out")
    predictions.write(out)
    task = args.task or task_of(split)
    words = [" ".join(f"{name} {value:.4f}" for name, value in metrics.items())] if metrics else []
    if args.results:
        result = make_result(args, split, own, group, metrics, out)
        words.append(f"-> {put_task_result(args.results, result)}")
    name = split or group.about.name
    return "\t".join([task, name, f"{len(predictions.texts)} questions", *words])


def _parser() -> Parser:
    parser = Parser("answer", __doc__)
    add = parser.add_argument
    add("data", type=Path, help="folder made by data-prep/prepare-qa.sh")
    add("checkpoint", type=Path, help="fine-tuned with the task extractive_qa")
    questions = parser.add_mutually_exclusive_group(required=True)
    questions.add_argument("--split", nargs="+", help="valid, test_xquad_de, ...")
    questions.add_argument("--file", type=Path, help="SQuAD's JSON, plain or gzipped")
    add("--language", default="", help="of --file: en, de, ...")
    add("--scoring", choices=SCORINGS, default="squad", help="of --file (default squad)")
    add("--out", type=Path, required=True, help="folder for the predictions")
    add("--max-answer", type=int, help="subwords at most (default: as in training)")
    add("--n-best", type=int, default=N_BEST, help=f"answers to list (default {N_BEST})")
    add(
        "--threshold",
        type=float,
        default=0.0,
        help="where questions can be impossible: odds of no answer above which there is none; "
        "diet_mt.evaluation.score_answers finds the best ones (default 0)",
    )
    add("--results", type=Path, help="folder for the record, such as results/tasks")
    add("--task", help="its name in the record (default: by the split)")
    add("--system", help="name in the record (default: the encoding's)")
    add("--pretrained", type=Path, help="the checkpoint that was fine-tuned, for the record")
    add("--batch-size", type=int, default=32, help="windows at a time (default 32)")
    return parser


def _check(args: argparse.Namespace) -> None:
    for name in ("max_answer", "n_best", "batch_size"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise UserError(f"--{name.replace('_', '-')} {value}: must be at least 1")


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    quiet()

    def body() -> None:
        _check(args)
        answerer = load_answerer(args.checkpoint, args.data)
        args.max_answer = args.max_answer or answerer.task.cfg.max_answer
        own: dict[str, Any] = {}
        if args.results:
            own = facts(args.checkpoint, answerer.model, args.pretrained, ("torchmetrics",))
            own["system"] = args.system or own["system"]
        for split in args.split or [""]:
            print(_answer_one(args, answerer, own, split), flush=True)

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
