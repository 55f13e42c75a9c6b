"""Bug fixes for fairseq: functions that are called in place of fairseq's.

A function gets what it replaces as its first argument; ``__init__.py`` has the table.
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
    """Batches of all indices, the last one of any size."""
    if not isinstance(indices, np.ndarray):
        indices = np.fromiter(indices, dtype=np.int64, count=-1)
    if not len(indices):  # fairseq-fixed: IndexError
        return []
    batches = original(indices, *args, **kwargs)
    rest = indices[sum(map(len, batches)) :]  # batches are consecutive indices
    return [*batches, rest] if len(rest) else batches


def filter_indices_by_size(
    original: Function, task: FairseqTask, indices: Any, *args: Any, **kwargs: Any
) -> Any:
    """The indices of sentences that are short enough; the log has how many are not."""
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
    """An iterator of all epochs: the batches of epoch 1 in another order, new workers in each."""
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
    """Log-probabilities without repetitions of the tokens up to ``step``, which padding follows."""
    return original(block, tokens[:, : step + 1], lprobs, bsz, beam_size, step)


def override_module_args(original: Function, args: Any) -> Any:
    """The options with a TPU for ``--bf16`` only where ``torch_xla`` can drive one."""
    if getattr(args, "bf16", False) and find_spec("torch_xla") is None:
        args.tpu = False
    return original(args)


def broadcast_object(
    original: Function, obj: Any, src_rank: int, group: Any, dist_device: torch.device
) -> Any:
    """``obj`` of the process ``src_rank``, in all of them. It was read safely by that process."""
    box = [obj]
    torch.distributed.broadcast_object_list(box, src=src_rank, group=group, device=dist_device)
    return box[0]


def broadcast_state(original: Function, *args: Any, **options: Any) -> Any:
    """The object; of a checkpoint, with the options that fairseq's copy of its weights lacks."""
    state = original(*args, **options)
    if isinstance(state, dict) and "model" in state:
        attach_options(state)
    return state


class QuantizedForms(Dict[type, type]):
    """The quantized form of each class of layers. A subclass has that of its nearest ancestor.

    Subclasses of ``nn.Embedding`` need an entry of their own, since some compute something else
    from the same weights, such as fairseq's learned positions.
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
    """``w`` rounded to ``bits``, scale and zero point, all on the device of ``w``."""
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
    """A checkpoint that names no files elsewhere, with all ``arg_overrides`` that its model knows.

    Errors name the file, those that do not speak of it excepted.
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
        # fairseq takes any table for a checkpoint and stumbles where that first makes no sense.
        raise UserError(f"{path}: not a checkpoint of fairseq-train ({reason(error)})") from error


def _set_newer(state: Dict[str, Any], overrides: Dict[str, Any]) -> None:
    """Sets options of the model that are newer than the checkpoint."""
    model: Any = getattr(state.get("cfg"), "model", None)
    name = getattr(model, "_name", None)
    known = MODEL_DATACLASS_REGISTRY.get(ARCH_MODEL_NAME_REGISTRY.get(name, name))
    if overrides and known is not None:
        newer = {field.name for field in fields(known)} - set(model)
        with open_dict(model):
            for option in newer & overrides.keys():
                model[option] = overrides[option]


def copy(original: Function, src_path: str, dst_path: str, overwrite: bool = False) -> Any:
    """Copies a file, which appears when it is complete."""
    if PathManager.path_requires_pathmanager(dst_path):
        return original(src_path, dst_path, overwrite=overwrite)
    result = original(src_path, f"{dst_path}.part", overwrite=True)
    os.replace(f"{dst_path}.part", dst_path)
    return result


PATIENCE, _LR_PATIENCE = "patience", "lr_patience"  # keys of extra_state
# fairseq stores last_epoch, and replaces it as it loads.
_COUNTS = {PATIENCE: ("best", "num_runs"), _LR_PATIENCE: ("num_bad_epochs", "last_epoch")}


def _counters(trainer: Trainer) -> Dict[str, Any]:
    """The objects whose attributes count; None for what this training does not use."""
    modules = (sys.modules.get(name) for name in ("__main__", "fairseq_cli.train"))
    functions = (getattr(module, "should_stop_early", None) for module in modules)
    return {
        PATIENCE: next(filter(None, functions), None),
        _LR_PATIENCE: getattr(trainer.lr_scheduler, "lr_scheduler", None),
    }


def save_checkpoint(
    original: Function, trainer: Trainer, filename: str, extra_state: Dict[str, Any]
) -> Any:
    """Saves a checkpoint, with the counts of ``--patience`` and ``--lr-patience``."""
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
    """Loads a checkpoint; with a new optimizer our models may adapt its positions."""
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
    """Loads a checkpoint, restores the counts, and ends the epoch at whose end it was saved: only
    after the save does fairseq tell the schedule the validation loss.
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
