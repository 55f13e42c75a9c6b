"""fairseq's checkpoints, read without running code and never left half-written.

Two functions of fairseq have no hook for either and are replaced when the plugin is imported, each
by one that calls
it: ``checkpoint_utils.load_checkpoint_to_cpu`` and ``PathManager.copy``.
"""

from __future__ import annotations

import argparse
import functools
import os
import pickle
from typing import Any, Callable, Dict, List, Tuple, Union

import numpy as np
import torch
from fairseq import checkpoint_utils
from fairseq.file_io import PathManager

from .errors import UserError

_Global = Union[Any, Tuple[Any, str]]

# Set by torch.serialization's user to switch the safe loader off for the whole process.
_UNSAFE_SWITCH = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"


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
        except pickle.UnpicklingError as error:
            if "Weights only load failed" not in str(error):
                raise UserError(
                    f"{path}: not a checkpoint, or damaged ({_first_line(error)})"
                ) from error
            raise UserError(
                f"{path}: refused, for it holds more than tensors, numbers and options, and could "
                f"run code when loaded ({_offender(error)})"
            ) from error
        except (RuntimeError, EOFError) as error:
            text = str(error)
            if (
                isinstance(error, EOFError)
                or "PytorchStreamReader" in text
                or "zip archive" in text
            ):
                raise UserError(
                    f"{path}: cut short or not a checkpoint ({_first_line(error)}); use another "
                    "checkpoint of the run"
                ) from error
            raise

    return wrapped


def _first_line(error: BaseException) -> str:
    return (str(error).strip().split("\n")[0] or type(error).__name__).rstrip(".")


def _offender(error: BaseException) -> str:
    """The line of torch's long message that names the type."""
    lines = [
        line.strip() for line in str(error).split("\n") if "GLOBAL" in line or "Unsupported" in line
    ]
    return lines[0].split(" was not an allowed")[0] if lines else _first_line(error)


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


def install() -> None:
    """Puts both replacements in place and allows :func:`harmless_types`; once, however often it is
    called.
    """
    if hasattr(checkpoint_utils.load_checkpoint_to_cpu, "__wrapped__"):
        return
    torch.serialization.add_safe_globals(harmless_types())
    checkpoint_utils.load_checkpoint_to_cpu = load_safely(checkpoint_utils.load_checkpoint_to_cpu)
    PathManager.copy = staticmethod(copy_whole(PathManager.copy))
