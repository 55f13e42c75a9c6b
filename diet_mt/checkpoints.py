"""fairseq's checkpoints: read without running code, never left half-written, gone on from exactly.

Four functions of fairseq have no hook for this and are replaced when the plugin is imported, the
first three by one that calls it: ``checkpoint_utils.load_checkpoint_to_cpu``, ``PathManager.copy``,
``FairseqTask.get_batch_iterator`` and ``distributed.utils._broadcast_object_slow``.
"""

from __future__ import annotations

import argparse
import functools
import os
import pickle
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import numpy as np
import torch
import torch.distributed
from fairseq import checkpoint_utils
from fairseq.distributed import utils as distributed_utils
from fairseq.file_io import PathManager
from fairseq.tasks import FairseqTask

from .errors import UserError

_Global = Union[Any, Tuple[Any, str]]

# Set by torch.serialization's user to switch the safe loader off for the whole process.
_UNSAFE_SWITCH = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"

# What torch's safe loader says where a file names a type or function that it does not allow. Its
# other complaints are about files that make no sense.
_REFUSALS = ("GLOBAL", "unrecognized function", "Can only ")

# What torch says where a file ends too early, in its new and its old format.
_CUT_SHORT = ("PytorchStreamReader", "zip archive", "unexpected EOF", "corrupt")


def harmless_types() -> List[_Global]:
    """What fairseq stores beside tensors: its parsed options, and with ``--eval-bleu`` numbers from
    numpy.

    None of them runs code when it is rebuilt. numpy's functions go by two names, before and after
    its version 2.
    """
    dtypes = [type(np.dtype(kind)) for kind in (np.float64, np.float32, np.int64, np.int32)]
    multiarray = np.core.multiarray if np.__version__ < "2" else np._core.multiarray  # type: ignore[attr-defined]
    renamed = [
        (getattr(multiarray, name), f"{package}.multiarray.{name}")
        for name in ("_reconstruct", "scalar")
        for package in ("numpy.core", "numpy._core")
    ]
    return [argparse.Namespace, np.ndarray, np.dtype, *dtypes, *renamed]


def load_safely(load: Callable[..., Dict[str, Any]]) -> Callable[..., Dict[str, Any]]:
    """``load(path, ...)`` with errors that name the file: :class:`UserError` for one cut short or
    not harmless.
    """

    @functools.wraps(load)
    def wrapped(path: str, *args: Any, **kwargs: Any) -> Dict[str, Any]:
        if os.environ.get(_UNSAFE_SWITCH, "").lower() in ("1", "y", "yes", "true"):
            raise UserError(f"{_UNSAFE_SWITCH} is set: checkpoints could run code; unset it")
        try:
            return load(path, *args, **kwargs)
        except OSError:
            raise
        except Exception as error:
            fault = _fault(error)
            if fault is None:
                raise
            raise UserError(f"{path}: {fault}") from error

    return wrapped


def _fault(error: Exception) -> Optional[str]:
    """What is wrong with the file, or None where ``error`` does not speak of the file."""
    text = str(error)
    if isinstance(error, pickle.UnpicklingError) and any(word in text for word in _REFUSALS):
        return (
            "refused, for it holds more than tensors, numbers and options, and could run code when "
            f"loaded ({_offender(text)})"
        )
    if isinstance(error, EOFError) or any(word in text for word in _CUT_SHORT):
        reason = _first_line(error).split(". ")[0]
        return f"cut short or not a checkpoint ({reason}); use another checkpoint of the run"
    if isinstance(error, RuntimeError):
        return None
    # The reader takes any file for a checkpoint and stumbles where that first makes no sense.
    return f"not a checkpoint of fairseq, or damaged ({_first_line(error)})"


def _first_line(error: Exception) -> str:
    # The safe loader's own words stand at the end of a paragraph of advice.
    text = str(error).rpartition("WeightsUnpickler error: ")[2]
    line = text.strip().split("\n")[0].rstrip(".")
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def _offender(text: str) -> str:
    """The line of torch's long message that names the type."""
    line = next(line.strip() for line in text.split("\n") if any(w in line for w in _REFUSALS))
    return line.split(" was not an allowed")[0].rstrip(".")


def copy_whole(copy: Callable[..., Any]) -> Callable[..., Any]:
    """``copy(source, target, overwrite)`` that shows ``target`` only when it is complete.

    fairseq writes a checkpoint aside and renames it, but then copies it in place to
    ``checkpoint_last.pt``: killed there, the run has nothing to continue from.
    """

    @functools.wraps(copy)
    def wrapped(src_path: str, dst_path: str, overwrite: bool = False) -> Any:
        if PathManager.path_requires_pathmanager(dst_path):
            return copy(src_path, dst_path, overwrite=overwrite)
        result = copy(src_path, f"{dst_path}.part", overwrite=True)
        os.replace(f"{dst_path}.part", dst_path)
        return result

    return wrapped


def batch_as_at_first(get_batch_iterator: Callable[..., Any]) -> Callable[..., Any]:
    """``get_batch_iterator(task, dataset, ..., epoch=N)`` that makes the batches of epoch 1, and
    whose workers begin anew in every epoch.

    A task whose iterator serves all epochs makes its batches once and then only shuffles them.
    fairseq-fixed seeds that with the epoch at which the process starts, so a run that continues in
    epoch 5 had other batches than one that was never stopped. It also keeps the workers, each with
    the dataset as it was in that epoch: masked_lm then hides the same words in every epoch, and
    others in a run that continues.
    """

    @functools.wraps(get_batch_iterator)
    def wrapped(task: FairseqTask, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        epoch = kwargs.get("epoch", 1)
        every_epoch_anew = (
            kwargs.get("disable_iterator_cache")
            or kwargs.get("update_epoch_batch_itr")
            or not task.can_reuse_epoch_itr(dataset)
        )
        as_asked = epoch <= 1 or every_epoch_anew or dataset in task.dataset_to_epoch_iter
        given = kwargs if as_asked else {**kwargs, "epoch": 1}
        iterator = get_batch_iterator(task, dataset, *args, **given)
        iterator.reuse_dataloader = False
        if not as_asked:
            dataset.set_epoch(epoch)
            iterator.epoch = epoch
        return iterator

    return wrapped


def broadcast_pickled(obj: Any, src_rank: int, group: Any, dist_device: torch.device) -> Any:
    """What the process ``src_rank`` calls this with, in every process of the training.

    The first process reads a checkpoint and sends it to the others with this. fairseq packs it as a
    checkpoint again, which since torch 2.6 the others refuse to unpack, because of the options in
    it: no training on several GPUs could be continued. That refusal is for files from elsewhere;
    what comes here has been read safely by a process of the same training.
    """
    box = [obj]
    torch.distributed.broadcast_object_list(box, src=src_rank, group=group, device=dist_device)
    return box[0]


def install() -> None:
    """Puts the replacements in place and allows :func:`harmless_types`; once, however often it is
    called.
    """
    if hasattr(checkpoint_utils.load_checkpoint_to_cpu, "__wrapped__"):
        return
    torch.serialization.add_safe_globals(harmless_types())
    checkpoint_utils.load_checkpoint_to_cpu = load_safely(checkpoint_utils.load_checkpoint_to_cpu)
    PathManager.copy = staticmethod(copy_whole(PathManager.copy))
    FairseqTask.get_batch_iterator = batch_as_at_first(FairseqTask.get_batch_iterator)
    distributed_utils._broadcast_object_slow = broadcast_pickled
