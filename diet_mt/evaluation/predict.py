"""Fine-tuned checkpoints on the splits of their task, and their rows; classification."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import utils

from ..bert.glue import Task, language_of
from ..bert.metrics import measure
from ..criterions.diet_sentence_prediction import predictions_of
from ..evaluation import checkpoint as checkpoints
from ..system.errors import UserError
from ..system.files import lines_in, lines_of, make_folder, sha256, write_lines
from ..system.progress import say
from .checkpoint import reading
from .fairseq_options import quiet
from .options import Options, fairseq_version, portable_file, revision, today, training_of
from .records import ENCODING, TaskResult, model_data, positions_of, put_row, splits_of
from .requests import EvaluationRequest, PredictRequest, specification

TASK = "diet_sentence_prediction"
_WHOLE = 0.99  # share of the official rows below which a set is called a part of them
_LIBRARIES = ("scikit-learn", "scipy")


@dataclass(frozen=True)
class FineTuned:
    """A model, on the GPU where there is one, and fairseq's task over the data."""

    model: Any
    task: Any


def each_split(
    request: EvaluationRequest,
    tasks: Mapping[str, str],
    load: Callable[[], FineTuned],
    one: Callable[[FineTuned, dict[str, Any], str], str],
    *,
    again: bool,
    libraries: Sequence[str] = (),
) -> None:
    """Evaluates splits and prints the line of each.

    Args:
        tasks: of each split.
        load: the model with its task.
        one: evaluates it, with the facts about the checkpoint, on a split.
        again: also splits that have a row of the checkpoint.
        libraries: packages whose versions matter to the metrics.
    """
    results, checkpoint = request.results, request.checkpoint
    # Before the model is loaded; loading reports a missing checkpoint.
    content = sha256(checkpoint) if results and checkpoint.is_file() else ""
    splits, done = [], {}
    if results and not again:
        done = {task: splits_of(results, task, content) for task in dict.fromkeys(tasks.values())}
    for split, task in tasks.items():
        if split in done.get(task, ()):
            say(f"{task} {split}: {checkpoint} has its row in {results} already")
        else:
            splits.append(split)
    if not splits:
        return
    quiet()
    loaded = load()
    own = _facts(request, content, loaded.model, libraries) if results else {}
    for split in splits:
        print(one(loaded, own, split), flush=True)


def batches_of(task: Any, dataset: Any, size: int) -> Any:
    """Batches of so many examples, in their order, on the GPU where there is one."""
    iterator = task.get_batch_iterator(dataset=dataset, max_sentences=size)
    batches = iterator.next_epoch_itr(shuffle=False)
    return map(utils.move_to_cuda, batches) if torch.cuda.is_available() else batches


def own_positions(signature: str, arch: str) -> Options:
    """``records.positions_of``, without the rank that the architecture has."""
    positions, usual = positions_of(signature), vars(checkpoints.preset_of(arch))
    own = positions[ENCODING], positions.get("rank")
    if own == (usual.get("position_encoding"), usual.get("position_rank")):
        positions.pop("rank", None)
    return positions


def load_fine_tuned(checkpoint: Path, data: Path, task: str) -> FineTuned:
    """Raises UserError for a checkpoint of another task."""
    with reading(checkpoint):
        name = str(checkpoints.load_state(checkpoint)["cfg"]["task"]["_name"])
    if name != task:
        raise UserError(f"{checkpoint}: a model of the task {name}; fine-tune first, on {task}")
    model, _, made = checkpoints.load_with_task(checkpoint, data)
    return FineTuned(model.cuda() if torch.cuda.is_available() else model, made)


def _facts(
    request: EvaluationRequest, content: str, model: Any, libraries: Sequence[str]
) -> dict[str, Any]:
    """Fields of :class:`records.TaskResult` that do not depend on the task.

    ``content``: SHA-256 of the checkpoint, before the ``model`` was loaded from it.
    """
    with reading(request.checkpoint):
        state = checkpoints.load_state(request.checkpoint)
    cfg = state["cfg"]
    # Examples in one update of all processes.
    batch = int(cfg["dataset"]["batch_size"] or 0) * int(cfg["optimization"]["update_freq"][0])
    batch *= max(1, int(cfg["distributed_training"]["distributed_world_size"]))
    arch, pretrained = str(cfg["model"]["_name"]), request.pretrained
    positions = own_positions(model.signature, arch)
    valid = str(cfg["dataset"]["valid_subset"]).split(",")[0]
    return {
        "system": request.system or positions[ENCODING],
        "arch": arch,
        "positions": positions,
        "segments": str(cfg["model"]["segment_encoding"]),
        **(
            checkpoints.read_pretrained(pretrained)
            if pretrained
            else checkpoints.pretrained_of(request.checkpoint, cfg)
        ),
        "model": model_data(checkpoints.beyond_the_architecture(arch, cfg["model"])),
        "checkpoint_sha256": content,
        "training": training_of(request.checkpoint),
        "seed": int(cfg["common"]["seed"]),
        "lr": float(cfg["optimization"]["lr"][0]),
        "epochs": int(cfg["optimization"]["max_epoch"]),
        "batch": batch,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "date": today(),
        "revision": revision(Path(__file__).parent),
        "versions": {"fairseq": fairseq_version()}
        | {name: metadata.version(name) for name in ("torch", *libraries)},
        "updates": checkpoints.updates_of(state),
        "chosen_by": f"{valid} {cfg['checkpoint']['best_checkpoint_metric']}",
    }


@dataclass(frozen=True)
class Predictions:
    """``predicted`` (N,) and, where they are known, ``gold`` (N,), in the order of the data:
    numbers of classes, or scores.
    """

    predicted: np.ndarray
    gold: np.ndarray | None


def predict_splits(request: PredictRequest, splits: list[str]) -> None:
    """Predicts and scores each split, and prints a line for it.

    Without ``predictions``, splits that have a row of the same checkpoint are skipped.
    """
    data = request.data

    def load() -> FineTuned:
        if not (data / "input0" / "dict.txt").is_file():
            raise UserError(f"{data}: no input0/dict.txt; give a folder of diet-mt prepare glue")
        return load_fine_tuned(request.checkpoint, data, TASK)

    one = partial(_predict_split, request)
    tasks, again = dict.fromkeys(splits, request.task), bool(request.predictions)
    each_split(request, tasks, load, one, again=again, libraries=_LIBRARIES)


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


def _predict_split(
    request: PredictRequest, loaded: FineTuned, own: dict[str, Any], split: str
) -> str:
    """``own``: the facts about the checkpoint."""
    task, data = specification(request.task), request.data
    predictions = predict(loaded, split, request.batch_size)
    examples, gold = len(predictions.predicted), predictions.gold
    metrics = {} if gold is None else {
        name: measure(name, predictions.predicted, gold) for name in task.metrics
    }  # fmt: skip
    if request.results and not metrics:
        raise UserError(f"{split} of {request.task} has no labels; leave --results out")
    words = [f"{name} {value:.4f}" for name, value in metrics.items()]
    file = request.file(split)
    if file:
        shown = predictions if metrics else for_server(task, predictions)
        _write(file, loaded.task, shown, data / "raw" / f"{split}.id")
        words.append(f"-> {file}")
    if request.results:
        train_ids = data / "raw" / "train.id"
        train = lines_in(train_ids) if train_ids.is_file() else 0
        official = {"train": task.official[0], "valid": task.official[1]}
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
            notes=[
                f"{name}: {count:,} of {official[name]:,} official rows"
                for name, count in {"train": train, split: examples}.items()
                if 0 < count < _WHOLE * official.get(name, 0)
            ],
            **own,
        )
        words.append(f"-> {put_row(request.results, result)}")
    return "\t".join([request.task, split, f"{examples} examples", *words])


def for_server(task: Task, predictions: Predictions) -> Predictions:
    """Predictions of a test set, scores within the bounds of the labels."""
    if not task.labels.is_score:
        return predictions
    return Predictions(predictions.predicted.clip(task.labels.low, task.labels.high), None)


def _write(path: Path, task: Any, predictions: Predictions, id_file: Path) -> None:
    """Index, prediction and, where it is known, label; ``id_file``: ids of the official file."""

    def text(numbers: np.ndarray) -> list[str]:
        if task.cfg.regression_target:
            return [f"{score:.4f}" for score in numbers.tolist()]
        labels = task.label_dictionary
        return [str(labels[labels.nspecial + int(number)]) for number in numbers.tolist()]

    ids = list(map(str, range(len(predictions.predicted))))
    if id_file.is_file():
        ids = list(lines_of(id_file))
    if len(ids) != len(predictions.predicted):
        raise UserError(
            f"{len(ids)} ids but {len(predictions.predicted)} predictions; prepare again"
        )
    columns = {"index": ids, "prediction": text(predictions.predicted)}
    if predictions.gold is not None:
        columns["label"] = text(predictions.gold)
    make_folder(path.parent)
    rows = (tuple(columns), *zip(*columns.values(), strict=True))
    write_lines(path, ("\t".join(row) for row in rows))
