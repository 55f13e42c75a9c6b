"""Fine-tuned checkpoints on the splits of their task, and their rows; classification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import utils

from ..bert.glue import Task, language_of
from ..bert.metrics import measure
from ..criterions.diet_sentence_prediction import predictions_of
from ..system.errors import UserError
from ..system.files import lines_in, lines_of, make_folder, sha256, write_lines
from ..system.progress import say
from . import checkpoint as checkpoints
from .fairseq_options import quiet
from .options import Options, fairseq_version, portable_file, revision, today, training_of
from .records import ENCODING, TaskResult, model_data, positions_of, put_row, saved_rows
from .requests import EvaluationRequest, PredictRequest, specification

TASK = "diet_sentence_prediction"
_WHOLE = 0.99  # share of the official rows below which a set is called a part of them
_LIBRARIES = ("scikit-learn", "scipy")


@dataclass(frozen=True)
class FineTuned:
    """A model, fairseq's task over the data, and the fields of :class:`records.TaskResult` that do
    not depend on the split.
    """

    model: Any
    task: Any
    facts: dict[str, Any]


def new_splits(request: EvaluationRequest, tasks: Mapping[str, str]) -> list[str]:
    """Splits, with their ``tasks``, that have no row of the checkpoint yet."""
    if not request.results:
        return list(tasks)
    content, splits = sha256(request.checkpoint), []
    for split, task in tasks.items():
        rows = saved_rows(TaskResult, request.results / f"{task}.jsonl")
        if any((row.split, row.checkpoint_sha256) == (split, content) for row in rows):
            say(f"{task} {split}: row exists in {request.results}, skipped")
        else:
            splits.append(split)
    return splits


def load_fine_tuned(
    request: EvaluationRequest, task: str, libraries: Sequence[str] = ()
) -> FineTuned:
    """Loads a checkpoint. ``libraries``: of the metrics. Raises UserError for another ``task``."""
    quiet()
    checkpoint, data = request.checkpoint, request.data
    content = sha256(checkpoint)  # before it is read, so that no replaced file is described
    with checkpoints.reading(checkpoint):
        state = checkpoints.load_state(checkpoint, data=str(data))
    name = state["cfg"]["task"]["_name"]
    if name != task:
        raise UserError(f"{checkpoint}: a model of the task {name}, not {task}; fine-tune first")
    model, cfg, made = checkpoints.load_with_task(checkpoint, data, state)
    model.make_generation_fast_()
    facts: dict[str, Any] = {}
    if request.results:
        # Examples in one update of all processes.
        batch = int(cfg["dataset"]["batch_size"] or 0) * int(cfg["optimization"]["update_freq"][0])
        batch *= max(1, int(cfg["distributed_training"]["distributed_world_size"]))
        arch, pretrained = str(cfg["model"]["_name"]), request.pretrained
        positions = own_positions(model.signature, arch)
        valid = str(cfg["dataset"]["valid_subset"]).split(",")[0]
        facts = {
            "system": request.system or positions[ENCODING],
            "arch": arch,
            "positions": positions,
            "segments": str(cfg["model"]["segment_encoding"]),
            **(
                checkpoints.read_pretrained(pretrained)
                if pretrained
                else checkpoints.pretrained_of(checkpoint, cfg)
            ),
            "model": model_data(checkpoints.beyond_the_architecture(arch, cfg["model"])),
            "checkpoint_sha256": content,
            "training": training_of(checkpoint),
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
    return FineTuned(model.cuda() if torch.cuda.is_available() else model, made, facts)


def own_positions(signature: str, arch: str) -> Options:
    """``records.positions_of``, without the rank that the architecture has."""
    positions, usual = positions_of(signature), vars(checkpoints.preset_of(arch))
    own = positions[ENCODING], positions.get("rank")
    if own == (usual.get("position_encoding"), usual.get("position_rank")):
        positions.pop("rank", None)
    return positions


def batches_of(task: Any, dataset: Any, size: int) -> Any:
    """Batches of ``size`` examples in their order, on the GPU if there is one."""
    iterator = task.get_batch_iterator(dataset=dataset, max_sentences=size)
    batches = iterator.next_epoch_itr(shuffle=False)
    return map(utils.move_to_cuda, batches) if torch.cuda.is_available() else batches


def predict_splits(request: PredictRequest, splits: list[str]) -> None:
    """Predicts and scores each split, except, without ``predictions``, those with a row."""
    if not request.predictions:
        splits = new_splits(request, dict.fromkeys(splits, request.task))
    if not splits:
        return
    loaded = load_fine_tuned(request, TASK, _LIBRARIES)
    for split in splits:
        print(_predict_split(request, loaded, split), flush=True)


def predict(loaded: FineTuned, split: str, batch_size: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Classes or scores (N,) of a split, in its order: predicted, and true or None.

    Raises UserError for a missing or incomplete split and for logits that are not finite.
    """
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
    return np.concatenate(predicted)[order], np.concatenate(gold)[order] if gold else None


def _predict_split(request: PredictRequest, loaded: FineTuned, split: str) -> str:
    task, data = specification(request.task), request.data
    predicted, gold = predict(loaded, split, request.batch_size)
    examples, metrics = len(predicted), {}
    if gold is not None:
        metrics = {name: measure(name, predicted, gold) for name in task.metrics}
    if request.results and not metrics:
        raise UserError(f"{split} of {request.task} has no labels; leave --results out")
    words = [f"{name} {value:.4f}" for name, value in metrics.items()]
    file = request.file(split)
    if file:
        shown = predicted if metrics else for_server(task, predicted)
        _write(file, loaded.task, data / "raw" / f"{split}.id", shown, gold)
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
            **loaded.facts,
        )
        words.append(f"-> {put_row(request.results, result)}")
    return "\t".join([request.task, split, f"{examples} examples", *words])


def for_server(task: Task, predicted: np.ndarray) -> np.ndarray:
    """Predictions of a test set, scores within the bounds of the labels."""
    low, high = task.labels.low, task.labels.high
    return predicted.clip(low, high) if task.labels.is_score else predicted


def _write(
    path: Path, task: Any, id_file: Path, predicted: np.ndarray, gold: np.ndarray | None
) -> None:
    """Index, prediction and, where it is known, label; ``id_file``: ids of the official file."""

    def text(numbers: np.ndarray) -> list[str]:
        if task.cfg.regression_target:
            return [f"{score:.4f}" for score in numbers.tolist()]
        labels = task.label_dictionary
        return [str(labels[labels.nspecial + int(number)]) for number in numbers.tolist()]

    ids = lines_of(id_file) if id_file.is_file() else map(str, range(len(predicted)))
    columns = {"index": list(ids), "prediction": text(predicted)}
    if len(columns["index"]) != len(predicted):
        raise UserError(f"{id_file}: not the ids of {len(predicted)} predictions; prepare again")
    if gold is not None:
        columns["label"] = text(gold)
    make_folder(path.parent)
    rows = (tuple(columns), *zip(*columns.values(), strict=True))
    write_lines(path, ("\t".join(row) for row in rows))
