"""The mean of the weights of several checkpoints of one training (Vaswani et al. 2017).

The result loads like any checkpoint, lists its parts in ``averaged`` and has no optimizer state, so
no training resumes from it. Memory holds one checkpoint at a time and the sum in float64.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from torch import Tensor

from .. import plugin as plugin
from ..fairseq_patches.safe_load import read
from ..system.engine import alone
from ..system.errors import UserError
from ..system.process import is_full
from .checkpoint import reading, updates_of
from .options import difference

# Names of fairseq's checkpoints of an interval of updates, and of an epoch.
_NUMBERED = (r"checkpoint_\d+_(\d+)\.pt", r"checkpoint(\d+)\.pt")
State = dict[str, Any]


def last_checkpoints(folder: Path, count: int) -> list[Path]:
    """The latest ``count`` checkpoints of intervals, or of epochs if there are no others, in order.
    Raises UserError if there are fewer.
    """
    names: list[str] = []
    for pattern in _NUMBERED if folder.is_dir() else ():
        names = names or checkpoint_utils.checkpoint_paths(str(folder), pattern)
    if len(names) < count:
        hint = "train with --save-interval-updates and --keep-interval-updates"
        raise UserError(f"{folder}: {len(names)} numbered checkpoints, {count} needed; {hint}")
    return [Path(name) for name in reversed(names[:count])]  # the latest come first


def average(paths: list[Path]) -> State:
    """The last checkpoint with the mean weights of all, in at least float32; integers, such as
    signatures, are those of the last. Weights that several names share stay shared.

    Raises UserError for checkpoints of different models.
    """
    sums: dict[str, Tensor] = {}
    expected: dict[str, Any] = {}
    parts = []
    for path in paths:
        with reading(path):
            state: State = read(path, mmap=True)  # tensors are read from disk when they are used
            if not {"cfg", "model", "optimizer_history"} <= state.keys():
                raise UserError(f"{path}: not a checkpoint of fairseq-train")
            expected = expected or _facts(state)
            if what := difference(expected, _facts(state)):
                raise UserError(f"{path}: of another model than {paths[0]} ({what})")
            model = state["model"]
            owners = _owners(model)
            for name in sorted(set(owners.values())):
                if model[name].is_floating_point():
                    zeros = torch.zeros(model[name].shape, dtype=torch.float64)
                    sums.setdefault(name, zeros).add_(model[name])
            parts.append({"file": path.name, "updates": updates_of(state)})
    means = {}
    for name, total in sums.items():
        # The mean of half-precision numbers may not be representable in half precision.
        kind = model[name].dtype if model[name].itemsize >= 4 else torch.float32
        means[name] = total.div_(len(parts)).to(kind)
    rest = {key: value for key, value in state.items() if key != "last_optimizer_state"}
    averaged = {name: means.get(owner, model[name]) for name, owner in owners.items()}
    return {**rest, "model": averaged, "averaged": parts}


def _owners(model: dict[str, Tensor]) -> dict[str, str]:
    """Name of each tensor -> the first name with the same memory."""
    first: dict[Any, str] = {}
    return {
        name: first.setdefault((value.data_ptr(), value.shape, value.stride()), name)
        for name, value in model.items()
    }


def _facts(state: State) -> dict[str, Any]:
    """Properties that all checkpoints must share: options, languages and tensors of the model."""
    options, task = state["cfg"]["model"], state["cfg"]["task"]
    # A model or task of fairseq without a dataclass stores every option of the training.
    options = options if isinstance(options, dict) else {"_name": options.arch}
    task = task if isinstance(task, dict) else vars(task)
    owners = _owners(state["model"])
    tensors = {
        f"tensor {name}": f"{tuple(value.shape)} of {value.dtype}, memory of {owners[name]}"
        for name, value in state["model"].items()
    }
    languages = {name: task.get(name) for name in ("source_lang", "target_lang")}
    return {f"option {name}": value for name, value in options.items()} | languages | tensors


def save(state: State, out: Path) -> None:
    """Writes a checkpoint atomically. Raises UserError if it cannot be written."""
    part = out.with_name(out.name + ".part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with alone(out.parent):
            torch.save(state, part)
            os.replace(part, out)
    except (OSError, RuntimeError) as error:  # torch's own writer raises the latter
        full = out.parent.is_dir() and is_full(out.parent, str(error))
        with contextlib.suppress(OSError):
            part.unlink()
        why = "no space is left; make room and run again" if full else str(error)
        raise UserError(f"{out}: cannot be written ({why})") from None
