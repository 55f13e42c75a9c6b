"""What a fine-tuned checkpoint says about itself, for the records of ``task_records``."""

from __future__ import annotations

import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from ..records import sha256
from ..task_records import Option
from .pretrained import Pretrained, read_pretrained
from .trained import fairseq_version, load_state, portable, reading, revision

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


def facts(
    checkpoint: Path, model: Any, pretrained: Path | None, libraries: tuple[str, ...]
) -> dict[str, Any]:
    """Fields of :class:`TaskResult` that do not depend on the task.

    Args:
        model: built from the checkpoint.
        pretrained: the checkpoint that it was fine-tuned from, if it is known.
        libraries: packages whose versions matter to the metrics.

    Raises:
        UserError: a file is no checkpoint.
    """
    with reading(checkpoint):
        state = load_state(checkpoint)
    cfg = state["cfg"]
    system, options = encoding_of(model.signature)
    before = read_pretrained(pretrained) if pretrained else _NOTHING
    versions = {name: metadata.version(name) for name in ("torch", *libraries)}
    return {
        "system": system,
        "options": {"arch": str(cfg["model"]["_name"]), **options},
        "segments": str(cfg["model"]["segment_encoding"]),
        "pretrained": before.sha256,
        "pretrain_updates": before.updates,
        "pretrain_perplexity": before.perplexity,
        "checkpoint": sha256(checkpoint),
        "seed": int(cfg["common"]["seed"]),
        "lr": float(cfg["optimization"]["lr"][0]),
        "epochs": int(cfg["optimization"]["max_epoch"]),
        "batch": batch_of(cfg),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
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
    """What ``scripts/training.sh`` left beside the checkpoint; nothing if another one trained."""
    file = checkpoint.parent / "command"
    return [portable(file.read_text(encoding="utf-8").strip())] if file.is_file() else []
