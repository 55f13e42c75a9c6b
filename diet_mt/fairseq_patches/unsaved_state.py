"""Training state that fairseq leaves out of its checkpoints, so that a continued run has it.

- The counts of ``--patience`` and ``--lr-patience``: stored under ``extra_state``. fairseq stores
  ``last_epoch``, and replaces it as it loads.
- The validation loss of an epoch, which fairseq passes to the schedule after the save at the
  epoch's end: passed once that save is loaded.

Wrapped: ``Trainer.save_checkpoint`` and ``checkpoint_utils.load_checkpoint``.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, Dict

from fairseq import checkpoint_utils
from fairseq.trainer import Trainer

PATIENCE, _LR_PATIENCE = "patience", "lr_patience"  # keys of extra_state
_COUNTS = {PATIENCE: ("best", "num_runs"), _LR_PATIENCE: ("num_bad_epochs", "last_epoch")}


def _counters(trainer: Trainer) -> Dict[str, Any]:
    """The objects whose attributes count; None for what this training does not use."""
    modules = (sys.modules.get(name) for name in ("__main__", "fairseq_cli.train"))
    functions = (getattr(module, "should_stop_early", None) for module in modules)
    return {
        PATIENCE: next(filter(None, functions), None),
        _LR_PATIENCE: getattr(trainer.lr_scheduler, "lr_scheduler", None),
    }


def store(save_checkpoint: Callable[..., Any]) -> Callable[..., Any]:
    """``Trainer.save_checkpoint`` that stores the counts."""

    @functools.wraps(save_checkpoint)
    def wrapped(self: Trainer, filename: str, extra_state: Dict[str, Any]) -> Any:
        counts = {
            key: {name: getattr(counter, name) for name in _COUNTS[key]}
            for key, counter in _counters(self).items()
            if all(hasattr(counter, name) for name in _COUNTS[key])
        }
        return save_checkpoint(self, filename, {**extra_state, **counts})

    return wrapped


def restore(load_checkpoint: Callable[..., Any]) -> Callable[..., Any]:
    """``checkpoint_utils.load_checkpoint`` that restores the counts and ends the epoch."""

    @functools.wraps(load_checkpoint)
    def wrapped(cfg: Any, trainer: Trainer, **kwargs: Any) -> Any:
        state, iterator = load_checkpoint(cfg, trainer, **kwargs)
        if not trainer.get_num_updates():  # a new training, perhaps with the weights of another
            return state, iterator
        reset = {PATIENCE: cfg.reset_meters, _LR_PATIENCE: cfg.reset_lr_scheduler}
        for key, counter in _counters(trainer).items():
            stored = {} if counter is None or reset[key] else state.get(key, {})
            for name in filter(stored.__contains__, _COUNTS[key]):
                setattr(counter, name, stored[name])
        position = state["train_iterator"]
        if not (position["iterations_in_epoch"] or cfg.reset_lr_scheduler):
            trainer.lr_step(position["epoch"] - 1, state.get("val_loss"))
        return state, iterator

    return wrapped


Trainer.save_checkpoint = store(Trainer.save_checkpoint)
checkpoint_utils.load_checkpoint = restore(checkpoint_utils.load_checkpoint)
