"""Checkpoints as fairseq writes them, without a training."""

from __future__ import annotations

from typing import Any

from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.options import get_training_parser, parse_args_and_arch
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
