"""Checkpoints as fairseq writes them, without a training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.options import get_training_parser, parse_args_and_arch
from fairseq.tasks import setup_task
from omegaconf import OmegaConf


def config_of(*words: str) -> Any:
    """What fairseq-train makes of its data and options."""
    return convert_namespace_to_omegaconf(parse_args_and_arch(get_training_parser(), [*words]))


def state_of(
    cfg: Any = None,
    model: Any = None,
    *,
    updates: int = 7,
    epoch: int = 3,
    begun: int = 0,
    **extra_state: Any,
) -> dict[str, Any]:
    """A checkpoint after so many updates, ``begun`` of them in its last epoch; ``epoch``: the one
    that comes next.
    """
    history = {"num_updates": updates, "lr_scheduler_state": {}}
    iterator = {"epoch": epoch, "iterations_in_epoch": begun}
    return {
        "args": None,
        "cfg": OmegaConf.to_container(cfg, resolve=True, enum_to_str=True) if cfg else None,
        "model": model.state_dict() if model is not None else {},
        "best_loss": 1.0,
        "optimizer_history": [history | {"criterion_name": "x", "optimizer_name": "y"}],
        "extra_state": {"train_iterator": iterator, "best": 1.0, **extra_state},
    }


def write_checkpoint(data: Path, save: Path, *more: str) -> None:
    """The folder of a training: two epochs of seven updates in all, five of them metered."""
    words = [str(data), "--arch", "diet_rel_tiny", "--share-all-embeddings", "--seed", "5"]
    cfg = config_of(*words, "--save-dir", str(save), *more)
    model = setup_task(cfg.task).build_model(cfg.model)
    save.mkdir()
    metrics = {
        "train": [(180, "wpb", "AverageMeter", {"sum": 1, "count": 1})],
        "default": [(180, "wpb", "AverageMeter", {"sum": 600.0, "count": 5})],
    }
    torch.save(state_of(cfg, model, metrics=metrics), save / "checkpoint_best.pt")
    (save / "command").write_text(f"fairseq-train {data} --save-dir {save}")
    (save / "done").touch()
