"""Evaluation of fine-tuned checkpoints on the splits of their task, and their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from fairseq import utils

from ..errors import UserError
from ..files import sha256
from ..stages.progress import say
from .checkpoint import (
    beyond_the_architecture,
    load_state,
    load_with_task,
    preset_of,
    pretrained_of,
    read_pretrained,
    reading,
)
from .fairseq_options import quiet
from .options import Options
from .provenance import fairseq_version, revision, today, training_of
from .records import model_data, positions_of, splits_of
from .requests import EvaluationRequest


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
    if results and not again:
        known = {task: splits_of(results, task, content) for task in set(tasks.values())}
        there = [name for name, task in tasks.items() if name in known[task]]
        for name in there:
            say(f"{tasks[name]} {name}: {checkpoint} has its row in {results} already")
        tasks = {name: task for name, task in tasks.items() if name not in there}
        if not tasks:
            return
    quiet()
    loaded = load()
    own = facts(request, content, loaded.model, libraries) if results else {}
    for split in tasks:
        print(one(loaded, own, split), flush=True)


def batches_of(task: Any, dataset: Any, size: int) -> Any:
    """Batches of so many examples, in their order, on the GPU where there is one."""
    iterator = task.get_batch_iterator(dataset=dataset, max_sentences=size)
    batches = iterator.next_epoch_itr(shuffle=False)
    return map(utils.move_to_cuda, batches) if torch.cuda.is_available() else batches


def own_positions(signature: str, arch: str) -> Options:
    """``records.positions_of``, without the rank that the architecture has."""
    positions, usual = positions_of(signature), vars(preset_of(arch))
    own = positions["encoding"], positions.get("rank")
    if own == (usual.get("position_encoding"), usual.get("position_rank")):
        positions.pop("rank", None)
    return positions


def load_fine_tuned(checkpoint: Path, data: Path, task: str) -> FineTuned:
    """Raises UserError for a checkpoint of another task."""
    with reading(checkpoint):
        name = str(load_state(checkpoint)["cfg"]["task"]["_name"])
    if name != task:
        raise UserError(f"{checkpoint}: a model of the task {name}; fine-tune first, on {task}")
    model, _, made = load_with_task(checkpoint, data)
    return FineTuned(model.cuda() if torch.cuda.is_available() else model, made)


def facts(
    request: EvaluationRequest, content: str, model: Any, libraries: Sequence[str]
) -> dict[str, Any]:
    """Fields of :class:`records.TaskResult` that do not depend on the task.

    ``content``: SHA-256 of the checkpoint, before the ``model`` was loaded from it.
    """
    with reading(request.checkpoint):
        state = load_state(request.checkpoint)
    cfg = state["cfg"]
    # Examples in one update of all processes.
    batch = int(cfg["dataset"]["batch_size"] or 0) * int(cfg["optimization"]["update_freq"][0])
    batch *= max(1, int(cfg["distributed_training"]["distributed_world_size"]))
    arch = str(cfg["model"]["_name"])
    positions = own_positions(model.signature, arch)
    versions = {name: metadata.version(name) for name in ("torch", *libraries)}
    return {
        "system": request.system or positions["encoding"],
        "arch": arch,
        "positions": positions,
        "segments": str(cfg["model"]["segment_encoding"]),
        **(
            read_pretrained(request.pretrained)
            if request.pretrained
            else pretrained_of(request.checkpoint, cfg)
        ),
        "model": model_data(beyond_the_architecture(arch, cfg["model"])),
        "checkpoint_sha256": content,
        "training": training_of(request.checkpoint),
        "seed": int(cfg["common"]["seed"]),
        "lr": float(cfg["optimization"]["lr"][0]),
        "epochs": int(cfg["optimization"]["max_epoch"]),
        "batch": batch,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "date": today(),
        "revision": revision(Path(__file__).parent),
        "versions": {"fairseq": fairseq_version(), **versions},
        "updates": int(state["optimizer_history"][-1]["num_updates"]),
        "chosen_by": f"{str(cfg['dataset']['valid_subset']).split(',')[0]} "
        f"{cfg['checkpoint']['best_checkpoint_metric']}",
    }
