"""Bug fixes for fairseq: replacements of its functions.

Each gets the original function as its first argument; ``PATCHES`` in ``__init__.py`` lists the
originals and their bugs.
"""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import fields
from importlib.util import find_spec
from typing import Any, Callable, Dict, Optional, Tuple

import numpy as np
import torch
from fairseq.file_io import PathManager
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_DATACLASS_REGISTRY
from fairseq.modules.quantization.scalar import ops
from fairseq.tasks import FairseqTask
from fairseq.trainer import Trainer
from omegaconf import open_dict
from torch import Tensor, nn

from ..system.errors import UserError
from .safe_load import reason
from .trust import attach_options, check_size, confine

logger = logging.getLogger(__name__)
Function = Callable[..., Any]


def batch_by_size(original: Function, indices: Any, *args: Any, **kwargs: Any) -> Any:
    """Batches of all indices; the last batch may have any size."""
    if not isinstance(indices, np.ndarray):
        indices = np.fromiter(indices, dtype=np.int64, count=-1)
    if not len(indices):  # fairseq-fixed raises IndexError
        return []
    batches = original(indices, *args, **kwargs)
    rest = indices[sum(map(len, batches)) :]  # batches are consecutive indices
    return [*batches, rest] if len(rest) else batches


def filter_indices_by_size(
    original: Function, task: FairseqTask, indices: Any, *args: Any, **kwargs: Any
) -> Any:
    """Indices of the sentences that are short enough; logs the number of the others.

    Raises :class:`UserError` if no sentence is short enough.
    """
    remaining = original(task, indices, *args, **kwargs)
    if len(indices) and not len(remaining):
        raise UserError(
            f"all {len(indices):,} sentences are too long; see --max-source-positions, "
            "--max-target-positions and --beyond-table"
        )
    if skipped := len(indices) - len(remaining):
        logger.warning(
            f"{skipped:,} of {len(indices):,} sentences are too long and skipped: loss and scores "
            f"are over {len(remaining):,} sentences"
        )
    return remaining


def get_batch_iterator(
    original: Function, task: FairseqTask, dataset: Any, *args: Any, **kwargs: Any
) -> Any:
    """An iterator of all epochs: the batches of epoch 1, reordered, with new workers in each."""
    epoch = kwargs.get("epoch", 1)
    each_epoch_anew = (
        kwargs.get("disable_iterator_cache")
        or kwargs.get("update_epoch_batch_itr")
        or not task.can_reuse_epoch_itr(dataset)
    )
    as_it_is = epoch <= 1 or each_epoch_anew or dataset in task.dataset_to_epoch_iter
    iterator = original(task, dataset, *args, **(kwargs if as_it_is else {**kwargs, "epoch": 1}))
    iterator.reuse_dataloader = False
    if not as_it_is:
        dataset.set_epoch(epoch)
        iterator.epoch = epoch
    return iterator


def no_repeat_ngram(
    original: Function,
    block: Any,
    tokens: Tensor,
    lprobs: Tensor,
    bsz: int,
    beam_size: int,
    step: int,
) -> Any:
    """Log-probabilities, -inf for tokens that would repeat an n-gram.

    ``tokens``: (rows, max_len + 2); the original compares with the padding behind ``step``.
    """
    return original(block, tokens[:, : step + 1], lprobs, bsz, beam_size, step)


def override_module_args(original: Function, args: Any) -> Any:
    """Overrides from the command line; ``--bf16`` implies a TPU only if torch_xla is installed."""
    if getattr(args, "bf16", False) and find_spec("torch_xla") is None:
        args.tpu = False
    return original(args)


def broadcast_object(
    original: Function, obj: Any, src_rank: int, group: Any, dist_device: torch.device
) -> Any:
    """``obj`` of the process ``src_rank``, in every process.

    Pickled objects are safe here: that process has read them from a checked file.
    """
    box = [obj]
    torch.distributed.broadcast_object_list(box, src=src_rank, group=group, device=dist_device)
    return box[0]


def broadcast_state(original: Function, *args: Any, **options: Any) -> Any:
    """The broadcast object; fairseq's copy of a checkpoint's weights gets their options again."""
    state = original(*args, **options)
    if isinstance(state, dict) and "model" in state:
        attach_options(state)
    return state


class QuantizedForms(Dict[type, type]):
    """Quantized classes by class of layer; other classes use that of their nearest ancestor.

    Subclasses of ``nn.Embedding`` need an entry of their own: some, such as fairseq's learned
    positions, compute something else from the same weights.
    """

    def __missing__(self, kind: type) -> type:
        for ancestor in kind.__mro__[1:]:
            if ancestor in self and ancestor is not nn.Embedding:
                return self[ancestor]
        raise UserError(
            f"--quant-noise-scalar: {kind.__name__} has no quantized form; leave the option out"
        )


def emulate_int8_histogram(
    original: Function,
    w: Tensor,
    scale: Optional[Tensor] = None,
    zero_point: Optional[Tensor] = None,
    bits: int = 8,
) -> Any:
    """``w`` rounded to ``bits`` bits, its scale and its zero point, all on the device of ``w``."""
    if scale is None or zero_point is None:
        observer = ops.quantization.observer.HistogramObserver().to(device=w.device)
        observer(w.float())
        scale, zero_point = (value.to(w) for value in observer.calculate_qparams())
    return original(w, scale=scale, zero_point=zero_point, bits=bits)


def load_checkpoint_to_cpu(
    original: Function,
    path: str,
    arg_overrides: Optional[Dict[str, Any]] = None,
    *args: Any,
    **kwargs: Any,
) -> Dict[str, Any]:
    """A checkpoint with all ``arg_overrides`` that its model has; its own options are confined.

    Raises :class:`UserError`, with ``path``, for a file that is no checkpoint or is not trusted;
    OSError and RuntimeError unchanged.
    """
    try:
        state: Dict[str, Any] = original(path, arg_overrides, *args, **kwargs)
        _set_newer(state, arg_overrides or {})
        confine(state, os.path.dirname(os.path.abspath(path)), arg_overrides or {})
        check_size(state)
        return state
    except (OSError, RuntimeError):
        raise
    except UserError as error:
        text = str(error)
        raise UserError(text if text.startswith(path) else f"{path}: {text}") from None
    except Exception as error:
        # fairseq accepts any dictionary as a checkpoint and fails later, with any exception.
        raise UserError(f"{path}: not a checkpoint of fairseq-train ({reason(error)})") from error


def _set_newer(state: Dict[str, Any], overrides: Dict[str, Any]) -> None:
    """Overrides options of the model that are newer than the checkpoint."""
    model: Any = getattr(state.get("cfg"), "model", None)
    name = getattr(model, "_name", None)
    known = MODEL_DATACLASS_REGISTRY.get(ARCH_MODEL_NAME_REGISTRY.get(name, name))
    if overrides and known is not None:
        newer = {field.name for field in fields(known)} - set(model)
        with open_dict(model):
            for option in newer & overrides.keys():
                model[option] = overrides[option]


def copy(original: Function, src_path: str, dst_path: str, overwrite: bool = False) -> Any:
    """Copies a local file atomically."""
    if PathManager.path_requires_pathmanager(dst_path):
        return original(src_path, dst_path, overwrite=overwrite)
    result = original(src_path, f"{dst_path}.part", overwrite=True)
    os.replace(f"{dst_path}.part", dst_path)
    return result


PATIENCE, _LR_PATIENCE = "patience", "lr_patience"  # keys of extra_state
# fairseq saves last_epoch as well, but overwrites it while loading.
_COUNTS = {PATIENCE: ("best", "num_runs"), _LR_PATIENCE: ("num_bad_epochs", "last_epoch")}


def _counters(trainer: Trainer) -> Dict[str, Any]:
    """Objects with the counters of each key; None for what this training does not use."""
    modules = (sys.modules.get(name) for name in ("__main__", "fairseq_cli.train"))
    functions = (getattr(module, "should_stop_early", None) for module in modules)
    return {
        PATIENCE: next(filter(None, functions), None),
        _LR_PATIENCE: getattr(trainer.lr_scheduler, "lr_scheduler", None),
    }


def save_checkpoint(
    original: Function, trainer: Trainer, filename: str, extra_state: Dict[str, Any]
) -> Any:
    """Saves a checkpoint with the counters of ``--patience`` and ``--lr-patience``."""
    counts = {
        key: {name: getattr(counter, name) for name in _COUNTS[key]}
        for key, counter in _counters(trainer).items()
        if all(hasattr(counter, name) for name in _COUNTS[key])
    }
    return original(trainer, filename, {**extra_state, **counts})


def load_weights(
    original: Function,
    trainer: Trainer,
    filename: str,
    reset_optimizer: bool = False,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Loads a checkpoint; with ``reset_optimizer``, our models may adapt its positions."""
    models = [part for part in trainer.get_model().modules() if hasattr(part, "adapts")]
    for model in models:
        model.adapts = bool(reset_optimizer)
    try:
        return original(trainer, filename, reset_optimizer, *args, **kwargs)
    finally:
        for model in models:
            model.adapts = False


def load_checkpoint(
    original: Function, cfg: Any, trainer: Trainer, **kwargs: Any
) -> Tuple[Any, Any]:
    """Loads a checkpoint and its counters, and ends the epoch at whose end it was saved.

    fairseq passes the validation loss to the learning rate schedule only after that save.
    """
    state, iterator = original(cfg, trainer, **kwargs)
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
