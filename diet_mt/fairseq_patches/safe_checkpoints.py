"""Checkpoints are read without running code, and errors name the file.

fairseq leaves reading to torch's safe loader, which refuses what fairseq itself stores beside
tensors, and whose errors are pages of advice, some of it unsafe. Replaced:
``checkpoint_utils.load_checkpoint_to_cpu``, by a function that calls it; and torch is told which
types are harmless.
"""

from __future__ import annotations

import argparse
import functools
import os
import pickle
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import numpy as np
import torch
from fairseq import checkpoint_utils

from ..errors import UserError

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
        except UserError as error:
            raise UserError(f"{path}: {error}") from None
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


torch.serialization.add_safe_globals(harmless_types())
checkpoint_utils.load_checkpoint_to_cpu = load_safely(checkpoint_utils.load_checkpoint_to_cpu)
