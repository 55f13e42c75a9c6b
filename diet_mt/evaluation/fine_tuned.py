"""What a fine-tuned checkpoint says about itself, for the records of ``task_records``."""

from __future__ import annotations

import logging
import warnings
from argparse import Namespace
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from fairseq.models import ARCH_CONFIG_REGISTRY

from ..errors import UserError
from ..files import sha256
from ..stages.progress import say
from .checkpoint import (
    fairseq_version,
    load_state,
    load_with_task,
    portable,
    reading,
    revision,
    today,
)
from .pretrained import Pretrained, read_pretrained
from .records import described
from .task_records import Option, splits_of

_NOTHING = Pretrained("", 0, 0.0)


def encoding_of(signature: str) -> tuple[str, dict[str, Option]]:
    """``diet-rel sharing=none scale=head`` -> its name and its options."""
    name, *words = signature.split()
    options: dict[str, Option] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if equals:
            options[key] = value
    return name, options


def _own_rank(options: Mapping[str, Any]) -> int | None:
    """The rank of a model, which its signature leaves out, where it is not its architecture's."""
    preset = Namespace()
    ARCH_CONFIG_REGISTRY[options["_name"]](preset)
    rank: int | None = options["position_rank"]
    return None if rank == getattr(preset, "position_rank", None) else rank


def quiet() -> None:
    """No logs but warnings, of what loads and reads: the commands print what they found."""
    for name in ("fairseq", "diet_mt.tasks"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # fairseq always asks for pinned memory, and torch warns where there is no GPU to pin it for.
    warnings.filterwarnings("ignore", message="'pin_memory'")


def load_fine_tuned(checkpoint: Path, data: Path, task: str) -> tuple[Any, Any, Any]:
    """Model, on the GPU where there is one, the configuration of its training, and fairseq's task
    over the folder ``data``.

    Raises UserError where the checkpoint cannot be read, or is of another task.
    """
    with reading(checkpoint):
        name = str(load_state(checkpoint)["cfg"]["task"]["_name"])
    if name != task:
        raise UserError(f"{checkpoint}: a model of the task {name}; fine-tune first, on {task}")
    model, cfg, made = load_with_task(checkpoint, data)
    return model.cuda() if torch.cuda.is_available() else model, cfg, made


def facts(
    checkpoint: Path,
    content: str,
    model: Any,
    pretrained: Path | None,
    libraries: tuple[str, ...],
) -> dict[str, Any]:
    """Fields of :class:`TaskResult` that do not depend on the task.

    Args:
        content: SHA-256 of the checkpoint, before the model was loaded.
        model: built from the checkpoint.
        pretrained: the checkpoint that it was fine-tuned from, if it is known.
        libraries: packages whose versions matter to the metrics.

    Raises:
        UserError: a file is no checkpoint.
    """
    with reading(checkpoint):
        state = load_state(checkpoint)
    cfg = state["cfg"]
    system, options = encoding_of(described(model.signature, _own_rank(cfg["model"])))
    before = read_pretrained(pretrained) if pretrained else _NOTHING
    versions = {name: metadata.version(name) for name in ("torch", *libraries)}
    return {
        "system": system,
        "options": {"arch": str(cfg["model"]["_name"]), **options},
        "segments": str(cfg["model"]["segment_encoding"]),
        "pretrained": before.sha256,
        "pretrain_updates": before.updates,
        "pretrain_perplexity": before.perplexity,
        "checkpoint": content,
        "seed": int(cfg["common"]["seed"]),
        "lr": float(cfg["optimization"]["lr"][0]),
        "epochs": int(cfg["optimization"]["max_epoch"]),
        "batch": batch_of(cfg),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "date": today(),
        "revision": revision(Path(__file__).parent),
        "versions": {"fairseq": fairseq_version(), **versions},
        "updates": int(state["optimizer_history"][-1]["num_updates"]),
        "chosen_by": f"{str(cfg['dataset']['valid_subset']).split(',')[0]} "
        f"{cfg['checkpoint']['best_checkpoint_metric']}",
    }


def batch_of(cfg: Any) -> int:
    """Examples in one update of all processes."""
    each = int(cfg["dataset"]["batch_size"] or 0) * int(cfg["optimization"]["update_freq"][0])
    return each * max(1, int(cfg["distributed_training"]["distributed_world_size"]))


def train_command(checkpoint: Path) -> list[str]:
    """What ``diet-mt finetune`` left beside the checkpoint; nothing if another one trained."""
    file = checkpoint.parent / "command"
    return [portable(file.read_text(encoding="utf-8").strip())] if file.is_file() else []


def content_of(checkpoint: Path) -> str:
    """SHA-256 of a checkpoint; empty where there is none, which loading it will say."""
    return sha256(checkpoint) if checkpoint.is_file() else ""


def missing_rows(
    results: Path, checkpoint: Path, content: str, tasks: Mapping[str, str]
) -> list[str]:
    """Of the splits in ``tasks`` (split: task), those that have no row of this checkpoint yet."""
    known = {task: splits_of(results, task, content) for task in set(tasks.values())}
    there = [name for name, task in tasks.items() if name in known[task]]
    for name in there:
        say(f"{tasks[name]} {name}: {checkpoint} has its row in {results} already")
    return [name for name in tasks if name not in there]
