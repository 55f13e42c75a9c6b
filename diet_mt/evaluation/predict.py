"""Classification with a fine-tuned checkpoint of ``diet_sentence_prediction``: GLUE, XNLI."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..bert.glue import Task, language_of
from ..bert.metrics import measure
from ..criterions.diet_sentence_prediction import predictions_of
from ..errors import UserError
from ..files import decoded_lines, lines_in, make_folder, write_lines
from .fine_tuned import FineTuned, batches_of, each_split, load_fine_tuned
from .provenance import portable_file
from .records import TaskResult, put_row_of
from .requests import PredictRequest, specification

# Share of the official rows below which a set is called a part of them.
_WHOLE = 0.99
_LIBRARIES = ("scikit-learn", "scipy")

TASK = "diet_sentence_prediction"


@dataclass(frozen=True)
class Predictions:
    """``predicted`` (N,) and, where they are known, ``gold`` (N,), in the order of the data:
    numbers of classes, or scores.
    """

    predicted: np.ndarray
    gold: np.ndarray | None


def _load(checkpoint: Path, data: Path) -> FineTuned:
    if not (data / "input0" / "dict.txt").is_file():
        raise UserError(f"{data}: no input0/dict.txt; give a folder made by diet-mt prepare glue")
    return load_fine_tuned(checkpoint, data, TASK)


def predict(loaded: FineTuned, split: str, batch_size: int) -> Predictions:
    """Predictions of a split."""
    task = loaded.task
    if not (Path(task.cfg.data) / "input0" / f"{split}.idx").is_file():
        raise UserError(f"{task.cfg.data}: no split '{split}'")
    dataset = task.load_dataset(split)
    places, predicted, gold = [], [], []
    for sample in batches_of(task, dataset, batch_size):
        with torch.no_grad():
            logits, _ = loaded.model(
                **sample["net_input"],
                features_only=True,
                classification_head_name=task.cfg.classification_head_name,
            )
        best = predictions_of(logits, bool(task.cfg.regression_target))
        if not best.isfinite().all():
            raise UserError(f"{split}: logits are not finite; the training has diverged")
        places.append(sample["id"].cpu().numpy())
        predicted.append(best.cpu().numpy())
        if "target" in sample:
            gold.append(sample["target"].view(-1).double().cpu().numpy())
    order = np.argsort(np.concatenate(places))
    if len(order) != len(dataset):
        raise UserError(f"{task.cfg.data}: {split}: {len(order)} of {len(dataset)} predicted")
    return Predictions(
        np.concatenate(predicted)[order], np.concatenate(gold)[order] if gold else None
    )


def scores(task: Task, predictions: Predictions) -> dict[str, float]:
    """The task's metrics, 0 to 100; empty without labels."""
    if predictions.gold is None:
        return {}
    return {name: measure(name, predictions.predicted, predictions.gold) for name in task.metrics}


def _as_text(task: Any, numbers: np.ndarray) -> list[str]:
    """Predictions or true values (N,): names of classes, or scores."""
    if task.cfg.regression_target:
        return [f"{score:.4f}" for score in numbers.tolist()]
    labels = task.label_dictionary
    return [str(labels[labels.nspecial + int(number)]) for number in numbers.tolist()]


def write_predictions(path: Path, task: Any, predictions: Predictions, ids: list[str]) -> None:
    if len(ids) != len(predictions.predicted):
        raise UserError(
            f"{len(ids)} ids but {len(predictions.predicted)} predictions; prepare again"
        )
    columns = [ids, _as_text(task, predictions.predicted)]
    if predictions.gold is not None:
        columns.append(_as_text(task, predictions.gold))
    header = ("index", "prediction", "label")[: len(columns)]
    make_folder(path.parent)
    rows = (header, *zip(*columns, strict=True))
    write_lines(path, ("\t".join(row) for row in rows))


def for_server(task: Task, predictions: Predictions) -> Predictions:
    """Predictions of a test set, scores within the bounds of the labels."""
    if not task.labels.is_score:
        return predictions
    return Predictions(predictions.predicted.clip(task.labels.low, task.labels.high), None)


def read_ids(data: Path, split: str, count: int) -> list[str]:
    """The ids of a split in its official file; by default, numbers."""
    path = data / "raw" / f"{split}.id"
    if not path.is_file():
        return [str(number) for number in range(count)]
    return [line for _, line in decoded_lines(path)]


def notes_of(task: Task, train: int, split: str, examples: int) -> list[str]:
    """Remarks on data that are less than the official ones."""
    notes = []
    official = {"train": task.official[0], "valid": task.official[1]}
    for name, count in (("train", train), (split, examples)):
        if 0 < count < _WHOLE * official.get(name, 0):
            notes.append(f"{name}: {count:,} of {official[name]:,} official rows")
    return notes


def predict_splits(request: PredictRequest, splits: list[str]) -> None:
    """Predicts and scores each split, and prints a line for it.

    Without ``predictions``, splits that have a row of the same checkpoint are left alone.
    """
    each_split(
        request,
        dict.fromkeys(splits, request.task),
        lambda: _load(request.checkpoint, request.data),
        partial(_predict_split, request),
        again=bool(request.predictions),
        libraries=_LIBRARIES,
    )


def _predict_split(
    request: PredictRequest, loaded: FineTuned, own: dict[str, Any], split: str
) -> str:
    """``own``: the facts about the checkpoint."""
    task = specification(request.task)
    predictions = predict(loaded, split, request.batch_size)
    examples, metrics = len(predictions.predicted), scores(task, predictions)
    if request.results and not metrics:
        raise UserError(f"{split} of {request.task} has no labels; leave --results out")
    words = [f"{name} {value:.4f}" for name, value in metrics.items()]
    file = request.file(split)
    if file:
        ids = read_ids(request.data, split, examples)
        if predictions.gold is None:
            predictions = for_server(task, predictions)
        write_predictions(file, loaded.task, predictions, ids)
        words.append(f"-> {file}")
    if request.results:
        train_ids = request.data / "raw" / "train.id"
        train = lines_in(train_ids) if train_ids.is_file() else 0
        result = TaskResult(
            task=request.task,
            split=split,
            language=language_of(split),
            metrics=metrics,
            main_metric=task.main_metric,
            evaluation=request.command(split),
            examples=examples,
            train_examples=train,
            predictions=portable_file(file) if file else "",
            notes=notes_of(task, train, split, examples),
            **own,
        )
        words.append(f"-> {put_row_of(request.results, result)}")
    return "\t".join([request.task, split, f"{examples} examples", *words])
