"""``--patience`` counts on where a training continues.

fairseq-train keeps the best validation and how many have passed since in attributes of its function
``should_stop_early``, so a run that is killed and continued begins to count anew, from whatever its
next validation gives. Replaced: ``Trainer.save_checkpoint`` and ``Trainer.load_checkpoint``, by
methods that call them and keep both numbers in the checkpoint, under ``extra_state["patience"]``.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, Dict, Optional

from fairseq.trainer import Trainer

KEY = "patience"


def _counter() -> Optional[Callable[..., Any]]:
    """``should_stop_early`` of the fairseq-train that is at work; None in another program."""
    for name in ("__main__", "fairseq_cli.train"):  # run as a module, or by its console script
        found = getattr(sys.modules.get(name), "should_stop_early", None)
        if found is not None:
            return found
    return None


def save_count(save_checkpoint: Callable[..., Any]) -> Callable[..., Any]:
    """``save_checkpoint(trainer, filename, extra_state)`` with what ``--patience`` has counted."""

    @functools.wraps(save_checkpoint)
    def wrapped(self: Trainer, filename: str, extra_state: Dict[str, Any]) -> Any:
        counter = _counter()
        if getattr(counter, "best", None) is not None:
            count = {name: getattr(counter, name) for name in ("best", "num_runs")}
            extra_state = {**extra_state, KEY: count}
        return save_checkpoint(self, filename, extra_state)

    return wrapped


def load_count(load_checkpoint: Callable[..., Any]) -> Callable[..., Any]:
    """``load_checkpoint(trainer, filename, reset_optimizer, ...)`` that goes on counting, unless
    the training begins anew from the weights.
    """

    @functools.wraps(load_checkpoint)
    def wrapped(
        self: Trainer, filename: str, reset_optimizer: bool = False, *args: Any, **kwargs: Any
    ) -> Any:
        extra_state = load_checkpoint(self, filename, reset_optimizer, *args, **kwargs)
        counter = _counter()
        if counter is not None and not (reset_optimizer or kwargs.get("reset_meters")):
            for name, value in ((extra_state or {}).get(KEY) or {}).items():
                setattr(counter, name, value)
        return extra_state

    return wrapped


Trainer.save_checkpoint = save_count(Trainer.save_checkpoint)
Trainer.load_checkpoint = load_count(Trainer.load_checkpoint)
