"""A loader of checkpoints that runs no code.

torch's safe loader refuses options that fairseq stores with its tensors, and builds more kinds of
objects than fairseq stores. A pickle is therefore first checked step by step, without building
anything; then torch's loader builds it, with stand-ins from this file for numpy's functions.
"""

from __future__ import annotations

import io
import math
import os
import pickletools
import re
import zipfile
from argparse import Namespace
from collections import OrderedDict
from pickle import UnpicklingError
from typing import IO, Any, Callable, Collection, Dict, List, Tuple

import numpy as np
import torch
from torch import serialization

from ..system.errors import UserError, as_utf8
from .trust import attach_options, check_options

# Far beyond what fairseq stores; a larger pickle would only slow down the reader.
_LONGEST_PICKLE, _MOST_STEPS = 32 << 20, 400_000
_MOST_VALUES, _DEEPEST = 1_000_000, 100  # values are counted at each use


class _Dtype:
    """Stand-in for ``numpy.dtype``: a numeric type whose state may only set the byte order."""

    __slots__ = ("real",)  # so that no other object becomes one by its __class__

    def __init__(self, kind: str, *flags: Any) -> None:
        if not re.fullmatch("b1|[fiu][1248]", kind):
            raise UnpicklingError(f"numpy type {kind}")
        self.real = np.dtype(kind)

    def __setstate__(self, state: Tuple[Any, ...]) -> None:
        _, order, *rest = state
        if rest != [None, None, None, -1, -1, 0] or order not in ("<", ">", "|"):
            raise UnpicklingError("state of a numpy type")
        self.real = self.real.newbyteorder(order)


class _Array:
    """Stand-in for ``numpy.ndarray`` until the checkpoint is read."""

    __slots__ = ("real",)

    def __setstate__(self, state: Tuple[Any, ...]) -> None:
        _, shape, dtype, by_columns, data = state
        self.real = _numbers(dtype, data, shape, "F" if by_columns else "C")


def _numbers(dtype: Any, data: bytes, shape: Tuple[int, ...] = (), order: Any = "C") -> Any:
    if type(dtype) is not _Dtype or type(data) is not bytes or type(shape) is not tuple:
        raise UnpicklingError("numpy array")
    return np.frombuffer(data, dtype.real).reshape(shape, order=order).copy(order)


# torch's loader calls these instead of numpy; in numpy 2, numpy.core is numpy._core.
_STAND_INS: Dict[str, Any] = {"argparse.Namespace": Namespace}
_STAND_INS |= {"numpy.dtype": _Dtype, "numpy.ndarray": _Array}
for _core in ("core", "_core"):
    _STAND_INS[f"numpy.{_core}.multiarray._reconstruct"] = lambda *empty: _Array()
    _STAND_INS[f"numpy.{_core}.multiarray.scalar"] = lambda dtype, data: _numbers(dtype, data)[()]
_STORAGES = {
    f"torch.{name}Storage": size
    for size, names in ((8, "Double Long"), (4, "Float Int"), (2, "Half BFloat16 Short"))
    for name in names.split()
} | dict.fromkeys(("torch.CharStorage", "torch.ByteStorage", "torch.BoolStorage"), 1)
# torch allows more, such as sparse tensors, but not all of its versions check them for access out
# of bounds.
_TENSOR, _BYTES = "torch._utils._rebuild_tensor_v2", "_codecs.encode"
_KNOWN = {_TENSOR, _BYTES, "torch._utils._rebuild_parameter", "collections.OrderedDict"}
_KNOWN |= _STAND_INS.keys() | _STORAGES.keys()


def _check_pickle(pickle: IO[bytes], known: Collection[str], sizes: Callable[[str], int]) -> None:
    """Checks a pickle without building it. ``sizes``: bytes of a storage, by its key.

    Raises :class:`UserError` for names that are not ``known``, and ValueError or another exception
    for a pickle that is invalid, or that would take more than seconds to build or traverse.
    """
    # A value is [number of values in it, their depth, its kind, whether it is used again]. A value
    # that is used again cannot be filled: none contains itself, and no number changes later.
    stack: List[List[Any]] = []
    marks: List[int] = []
    memo: Dict[Any, List[Any]] = {}
    for step, (code, value, _) in enumerate(pickletools.genops(pickle)):
        name = code.name
        fills = name in ("APPEND", "APPENDS", "SETITEM", "SETITEMS", "BUILD")
        takes = code.stack_before[fills:]
        if step == _MOST_STEPS:
            raise ValueError("too long")
        if name == "GLOBAL":
            value = str(value).replace(" ", ".")
            if value not in known:
                raise UserError(f"untrusted type {value}, which could run code")
        if value in ("__dict__", "__class__"):
            raise ValueError("attributes of Python's own")
        if name == "MARK":
            marks.append(len(stack))
        elif name in ("BINGET", "LONG_BINGET"):
            memo[value][3] = True
            stack.append(memo[value])
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[value] = stack[-1]
        elif takes:
            start = marks.pop() if pickletools.markobject in takes else len(stack) - len(takes)
            taken = stack[start:]
            del stack[start:]
            if not fills:
                stack.append([1, 0, tuple(each[2] for each in taken), False])
            filled = stack[-1]
            filled[0] += sum(each[0] for each in taken)
            filled[1] = max((filled[1], *(each[1] + 1 for each in taken)))
            if filled[0] > _MOST_VALUES or filled[1] > _DEEPEST or filled[3]:
                raise ValueError("too many values")
            _check_call(name, filled[2], sizes)
        elif code.stack_after:
            stack.append([1, 0, () if name == "EMPTY_TUPLE" else value, False])


def _check_call(name: str, given: Any, sizes: Callable[[str], int]) -> None:
    """Raises an exception for calls that run for minutes in torch or read out of bounds."""
    if name == "BINPERSID":
        _, kind, key, _, count, *_ = given[0]
        wrong = not (type(key) is str and key.isascii())
        wrong = wrong or not 0 <= count * _STORAGES[kind] <= sizes(key)
    elif name == "REDUCE" and given[0] == _TENSOR:
        ((place, _, shape, *_),) = given[1:]
        wrong = math.prod(shape) > place[0][4]
    elif name == "BUILD":
        wrong = str(given[0]).startswith("torch.")  # a tensor would take any sizes for its state
    else:
        wrong = name == "REDUCE" and given[0] == _BYTES and given[1][1:] != ("latin1",)
    if wrong:
        raise ValueError("wrong sizes")


def _entry_size(record: zipfile.ZipInfo) -> int:
    """Bytes of a record's entry in the directory of a zip file."""
    name = record.orig_filename.encode("utf-8" if record.flag_bits & 0x800 else "cp437")
    return 46 + len(name) + len(record.extra) + len(record.comment)


def _check_file(path: str, known: Collection[str]) -> bool:
    """Whether a file has the format of torch >= 1.6. Raises errors like ``_check_pickle``."""
    whole = os.path.getsize(path)
    with open(path, "rb") as file:
        if file.read(4) != b"PK\3\4":
            file.seek(0)
            for _ in range(5):  # magic number, version, system, the state, names of its storages
                _check_pickle(file, known, lambda key: whole)
            return False
        with zipfile.ZipFile(file) as archive:
            records = archive.infolist()
            end = archive.start_dir + sum(map(_entry_size, records))
        file.seek(end)
        # The directory of records ends the file, so all readers use the same one.
        if file.read(4) not in (b"PK\5\6", b"PK\6\6") or whole - end > 98 + len(archive.comment):
            raise ValueError("data around the records")
        # As torch looks for them, so that each has one size; an extra field has no other name.
        sizes = {each.orig_filename.partition("/")[2].lower(): each.file_size for each in records}
        if len(sizes) < len(records) or sum(sizes.values()) > whole:
            raise ValueError("compressed, or with names twice")
        if sizes["data.pkl"] > _LONGEST_PICKLE:
            raise ValueError("too large")
        file.seek(0)
        with serialization._open_zipfile_reader(file) as archive:
            pickle = io.BytesIO(archive.get_record("data.pkl"))
    _check_pickle(pickle, known, lambda key: sizes[f"data/{key}".lower()])
    return True


def read(file: Any, mmap: bool = False) -> Dict[Any, Any]:
    """The state that torch saved in ``file``, a path or an open file: tensors, numbers and text.

    ``mmap``: tensors are read from disk at their first use. Raises :class:`UserError` for a file
    that is damaged or not trusted, OSError unchanged.
    """
    path = os.fspath(file if isinstance(file, (str, os.PathLike)) else file.name)
    before = serialization.get_safe_globals()
    pairs = (
        each if isinstance(each, tuple) else (each, f"{each.__module__}.{each.__qualname__}")
        for each in before
    )
    allowed = {name: each for each, name in pairs if not name.startswith("numpy.")} | _STAND_INS
    try:
        # torch itself opens only files with names in UTF-8.
        mmap = _check_file(path, _KNOWN | allowed.keys()) and mmap and as_utf8(path) == path
        serialization.clear_safe_globals()
        serialization.add_safe_globals([(each, name) for name, each in allowed.items()])
        with open(path, "rb") as opened:
            given = path if mmap else opened
            loaded = torch.load(given, map_location="cpu", weights_only=True, mmap=mmap)
        state: Dict[Any, Any] = _settled(loaded)
        check_options(state)
        return state
    except OSError:
        raise
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except Exception as error:
        raise UserError(
            f"{path}: truncated or not a checkpoint ({reason(error)}); use another checkpoint of "
            "the run"
        ) from error
    finally:
        serialization.clear_safe_globals()
        serialization.add_safe_globals(before)


def _settled(value: Any) -> Any:
    """A value of a checkpoint, its stand-ins replaced by numpy's arrays."""
    if type(value) is _Array:
        return value.real
    if type(value) is tuple:
        return tuple(map(_settled, value))
    if type(value) is list:
        value[:] = map(_settled, value)
    if type(value) is OrderedDict:
        # A state dict stores versions in this attribute; others would be read as options.
        metadata = vars(value).pop("_metadata", None)
        vars(value).clear()
        if metadata is not None:
            vars(value)["_metadata"] = _settled(metadata)
    inner = vars(value) if type(value) is Namespace else value
    if isinstance(inner, dict):
        for key, each in dict.items(inner):
            inner[key] = _settled(each)
    return value


def reason(error: Exception) -> str:
    """The type of an error and the first sentence of its message, without torch's advice."""
    text = str(error).rpartition("WeightsUnpickler error: ")[2]
    line = text.strip().split("\n")[0].split(". ")[0].rstrip(".")[:100]
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


class Torch:
    """Stand-in for the module ``torch`` in ``fairseq.checkpoint_utils``."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    @staticmethod
    def load(file: Any, *args: Any, **kwargs: Any) -> Any:
        state = read(file)
        attach_options(state)
        return state
