"""Predicts one split of a classification task with a fine-tuned checkpoint.

    diet-mt predict DATA CHECKPOINT --split valid valid1 --results results/tasks \\
        --pretrained checkpoints/mlm/diet_rel/checkpoint_best.pt
    diet-mt predict data/glue/MNLI CHECKPOINT --split test test1 --predictions FOLDER

DATA is made by data-prep/prepare-glue.sh or prepare-xnli.sh. Prints a line for each split: where
the labels are known, with the task's metrics, which ``--results`` keeps in ``RESULTS/TASK.jsonl``.
Predictions go to ``FOLDER/SPLIT.tsv``, or for a test set of GLUE to the file that its server asks
for (MNLI-mm.tsv). They have GLUE's form, ``index<TAB>prediction``, and a third column with the
labels where they are known.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any

from ..bert.glue import Task, task_named
from ..bert.metrics import measure
from ..bert.xnli import NAME as XNLI
from ..bert.xnli import SOURCE, language_of
from ..command_line import Parser, run
from ..errors import UserError
from ..files import raw_lines, write_lines
from .checkpoint import portable_file
from .classify import Classifier, Predictions, load_classifier, predict
from .fine_tuned import facts, quiet, train_command
from .task_records import TaskResult, put_task_result

# A set is called a part of the official one where it has less than this of its rows.
_WHOLE = 0.99


def specification(task: str) -> Task:
    """Labels and metrics of a task of GLUE, or of XNLI, which has those of MNLI."""
    return task_named(SOURCE if task == XNLI else task)


def scores(task: Task, found: Predictions) -> dict[str, float]:
    """The task's metrics, 0 to 100; nothing where there are no labels."""
    if found.gold is None:
        return {}
    return {name: measure(name, found.predicted, found.gold) for name in task.metrics}


def write_predictions(
    path: Path, classifier: Classifier, found: Predictions, ids: list[str]
) -> None:
    """Raises UserError where there are not as many ids as predictions."""
    if len(ids) != len(found.predicted):
        raise UserError(f"{len(ids)} ids but {len(found.predicted)} predictions; prepare again")
    columns = [ids, classifier.names(found.predicted)]
    if found.gold is not None:
        columns.append(classifier.names(found.gold))
    header = ("index", "prediction", "label")[: len(columns)]
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = (header, *zip(*columns, strict=True))
    write_lines(path, ("\t".join(row) for row in rows))


def for_server(task: Task, found: Predictions) -> Predictions:
    """Predictions of a test set, scores within the bounds of the labels."""
    if not task.labels.is_score:
        return found
    return Predictions(found.predicted.clip(task.labels.low, task.labels.high), None)


def read_ids(data: Path, split: str, count: int) -> list[str]:
    """The ids of a split, as its official file has them; their numbers where there are none."""
    path = data / "raw" / f"{split}.id"
    if not path.is_file():
        return [str(number) for number in range(count)]
    return [line.decode("utf-8").removesuffix("\n") for line in raw_lines(path)]


def notes_of(task: Task, train: int, split: str, examples: int) -> list[str]:
    """What is less than official about the data of a result, in words."""
    found = []
    official = {"train": task.official[0], "valid": task.official[1]}
    for name, count in (("train", train), (split, examples)):
        if 0 < count < _WHOLE * official.get(name, 0):
            found.append(f"{name}: {count:,} of {official[name]:,} official rows")
    return found


def make_result(
    args: argparse.Namespace,
    split: str,
    own: dict[str, Any],
    found: Predictions,
    metrics: dict[str, float],
    predictions: str,
) -> TaskResult:
    """The record of one evaluation; ``own``: the facts about the checkpoint; ``predictions``: their
    file, as :func:`portable_file` names it.
    """
    task = specification(args.task)
    train_ids = args.data / "raw" / "train.id"
    train = sum(1 for _ in raw_lines(train_ids)) if train_ids.is_file() else 0
    return TaskResult(
        task=args.task,
        split=split,
        language=language_of(split),
        metrics=metrics,
        main_metric=task.main_metric,
        commands=[*train_command(args.checkpoint), _own_command(args, split)],
        examples=len(found.predicted),
        train_examples=train,
        predictions=predictions,
        notes=notes_of(task, train, split, len(found.predicted)),
        **own,
    )


def _own_command(args: argparse.Namespace, split: str) -> str:
    words = ["diet-mt", "predict", args.data.name, args.checkpoint.name]
    return shlex.join([*words, "--task", args.task, "--split", split])


def file_name(task: Task, split: str) -> str:
    """Of the predictions: as GLUE's server asks for it, else the split's."""
    submissions = {file.split: file.submission for file in task.files}
    return submissions.get(split) or f"{split}.tsv"


def predict_split(
    args: argparse.Namespace, classifier: Classifier, own: dict[str, Any], split: str
) -> str:
    """Predicts, measures and keeps one split; returns a line that says what came out."""
    task = specification(args.task)
    found = predict(classifier, split, args.batch_size)
    metrics = scores(task, found)
    if args.results and not metrics:
        raise UserError(f"{split} of {args.task} has no labels; leave --results out")
    words = [f"{name} {value:.4f}" for name, value in metrics.items()]
    beside = ""
    if args.predictions:
        file = args.predictions / file_name(task, split)
        ids = read_ids(args.data, split, len(found.predicted))
        if found.gold is None:
            found = for_server(task, found)
        write_predictions(file, classifier, found, ids)
        beside = portable_file(file)
        words.append(f"-> {file}")
    if args.results:
        result = make_result(args, split, own, found, metrics, beside)
        words.append(f"-> {put_task_result(args.results, result)}")
    return "\t".join([args.task, split, f"{len(found.predicted)} examples", *words])


def _parser() -> Parser:
    parser = Parser("predict", __doc__)
    add = parser.add_argument
    add("data", type=Path, help="folder made by data-prep/prepare-glue.sh or prepare-xnli.sh")
    add("checkpoint", type=Path, help="fine-tuned with the task diet_sentence_prediction")
    add("--split", nargs="+", default=["valid"], help="one or more (default valid)")
    add("--task", help="CoLA, MNLI, XNLI, ... (default: the data folder's name)")
    add("--predictions", type=Path, help="folder to write them to")
    add("--results", type=Path, help="folder for the record, such as results/tasks")
    add("--system", help="name in the record (default: the encoding's)")
    add("--pretrained", type=Path, help="the checkpoint that was fine-tuned, for the record")
    add("--batch-size", type=int, default=64, help="default 64")
    return parser


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    quiet()

    def body() -> None:
        args.task = args.task or args.data.absolute().name
        specification(args.task)
        classifier = load_classifier(args.checkpoint, args.data)
        own: dict[str, Any] = {}
        if args.results:
            libraries = ("scikit-learn", "scipy")
            own = facts(args.checkpoint, classifier.model, args.pretrained, libraries)
            own["system"] = args.system or own["system"]
        for split in args.split:
            print(predict_split(args, classifier, own, split), flush=True)

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
