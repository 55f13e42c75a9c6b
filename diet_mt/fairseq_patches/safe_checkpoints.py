"""Checkpoints are read without running code, and errors name the file.

fairseq leaves reading to torch's safe loader, which refuses what fairseq itself stores beside
tensors, builds more kinds of objects than fairseq stores, and has errors that are pages of advice,
some of it unsafe. Replaced: the name ``torch`` in ``checkpoint_utils``, whose ``load`` becomes
:func:`read`; and ``checkpoint_utils.load_checkpoint_to_cpu``, by a function that calls it.
"""

from __future__ import annotations

import functools
import io
import math
import os
import pickletools
import re
import zipfile
from argparse import Namespace
from collections import OrderedDict
from pickle import UnpicklingError
from typing import IO, Any, Callable, Collection, Dict, Iterator, List, Mapping, Tuple

import numpy as np
import torch
from fairseq import checkpoint_utils
from torch import Tensor, serialization

from ..errors import UserError, as_utf8
from .confined import confine, section

# Far beyond what fairseq stores; what is larger would only keep the reader busy.
_LONGEST_PICKLE, _MOST_STEPS = 32 << 20, 400_000
_MOST_VALUES, _DEEPEST = 1_000_000, 100  # with each value counted wherever it is reached
_MOST_OPTIONS, _LONGEST_OPTION, _MOST_POSITIONS = 20_000, 100_000, 1_000_000
# What moves the cursor or turns the direction of writing; omegaconf looks up what follows "${".
_NO_OPTION = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|[$][{]")


class _Dtype:
    """Stands for ``numpy.dtype``: a kind of number, whose state may set the byte order alone."""

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
    """Stands for ``numpy.ndarray`` until the checkpoint is read."""

    __slots__ = ("real",)

    def __setstate__(self, state: Tuple[Any, ...]) -> None:
        _, shape, dtype, by_columns, data = state
        self.real = _numbers(dtype, data, shape, "F" if by_columns else "C")


def _numbers(dtype: Any, data: bytes, shape: Tuple[int, ...] = (), order: Any = "C") -> Any:
    if type(dtype) is not _Dtype or type(data) is not bytes or type(shape) is not tuple:
        raise UnpicklingError("numpy array")
    if len(data) != math.prod(map(abs, shape)) * dtype.real.itemsize:
        raise UnpicklingError("size of a numpy array")
    return np.frombuffer(data, dtype.real).reshape(shape, order=order).copy(order)


def _scalar(dtype: Any, data: bytes) -> Any:
    return _numbers(dtype, data)[()]


def _reconstruct(*empty: Any) -> _Array:
    if empty != (_Array, (0,), b"b"):
        raise UnpicklingError("numpy array")
    return _Array()


# torch's loader calls these, and nothing of numpy, by numpy's names before and after its version 2.
_STAND_INS: Dict[str, Any] = {
    "argparse.Namespace": Namespace,
    "numpy.dtype": _Dtype,
    "numpy.ndarray": _Array,
    "numpy.core.multiarray._reconstruct": _reconstruct,
    "numpy._core.multiarray._reconstruct": _reconstruct,
    "numpy.core.multiarray.scalar": _scalar,
    "numpy._core.multiarray.scalar": _scalar,
}
_STORAGES = {
    f"torch.{name}Storage": size
    for size, names in ((8, "Double Long"), (4, "Float Int"), (2, "Half BFloat16 Short"))
    for name in names.split()
} | dict.fromkeys(("torch.CharStorage", "torch.ByteStorage", "torch.BoolStorage"), 1)
# What torch itself allows beyond these, such as sparse tensors, not all of its versions check for
# reading outside of memory.
_TENSOR, _BYTES = "torch._utils._rebuild_tensor_v2", "_codecs.encode"
_KNOWN = {_TENSOR, _BYTES, "torch._utils._rebuild_parameter", "collections.OrderedDict"}
_KNOWN |= _STAND_INS.keys() | _STORAGES.keys()


def _check_pickle(pickle: IO[bytes], known: Collection[str], sizes: Callable[[str], int]) -> None:
    """Raises UserError where a pickle names what is not ``known``, and ValueError, or what comes of
    it, where it could not be built, or walked, in seconds. ``sizes``: bytes of a storage.

    A value is a list: how many it holds, how deeply, what it is, whether it is used again. Then it
    is filled no more, so that nothing contains itself and no count changes later.
    """
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
    """Raises an error for what torch would take minutes or memory of others for."""
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
    """Whether a file is of torch's format since 1.6. Raises what ``_check_pickle`` does."""
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
        # The directory of records is the last thing in the file, so all readers see the same one.
        if file.read(4) not in (b"PK\5\6", b"PK\6\6") or whole - end > 98 + len(archive.comment):
            raise ValueError("data around the records")
        # As torch looks for them, so that each has one size.
        sizes = {each.filename.partition("/")[2].lower(): each.file_size for each in records}
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
    """The table that torch saved in ``file``, a path or an open file, if it is of tensors, numbers,
    text and containers of them. ``mmap``: tensors are read from disk when they are used.

    Raises UserError, which names the file, for all else, and where it is damaged.
    """
    path = os.fspath(file if isinstance(file, (str, os.PathLike)) else file.name)
    before = serialization.get_safe_globals()
    plain = [each for each in before if not isinstance(each, tuple)]
    theirs: Dict[str, Any] = {f"{each.__module__}.{each.__qualname__}": each for each in plain}
    theirs |= {each[1]: each[0] for each in before if isinstance(each, tuple)}
    theirs = {name: each for name, each in theirs.items() if not name.startswith("numpy.")}
    try:
        # torch opens files itself only where their names are UTF-8.
        mmap = _check_file(path, _KNOWN | theirs.keys()) and mmap and as_utf8(path) == path
        serialization.clear_safe_globals()
        serialization.add_safe_globals(
            [(each, name) for name, each in {**theirs, **_STAND_INS}.items()]
        )
        with open(path, "rb") as opened:
            given = path if mmap else opened
            loaded = torch.load(given, map_location="cpu", weights_only=True, mmap=mmap)
        state: Dict[Any, Any] = _settled(loaded)
        _check_options(state)
        return state
    except OSError:
        raise
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except Exception as error:
        reason = _reason(error)
        raise UserError(
            f"{path}: cut short or not a checkpoint ({reason}); use another checkpoint of the run"
        ) from error
    finally:
        serialization.clear_safe_globals()
        serialization.add_safe_globals(before)


def _settled(value: Any) -> Any:
    """A value of a checkpoint, with numpy's arrays where they belong."""
    if type(value) is _Array:
        return value.real
    if type(value) is tuple:
        return tuple(map(_settled, value))
    if type(value) is list:
        value[:] = map(_settled, value)
    if type(value) is OrderedDict:
        # A state dict has its versions as an attribute; any other would be read as an option.
        metadata = vars(value).pop("_metadata", None)
        vars(value).clear()
        if metadata is not None:
            vars(value)["_metadata"] = _settled(metadata)
    inner = vars(value) if type(value) is Namespace else value
    if isinstance(inner, dict):
        for key, each in dict.items(inner):
            inner[key] = _settled(each)
    return value


def _check_options(state: Any) -> None:
    """Raises UserError where the configuration of a checkpoint could do more than set options."""
    cfg = (state.get("cfg") or {}) if isinstance(state, dict) else None
    if not isinstance(cfg, dict):
        raise UserError("not a checkpoint of fairseq-train, for it has no table of its options")
    for count, option in enumerate(_options((cfg, state.get("args")))):
        text = option if isinstance(option, str) else ""
        if count == _MOST_OPTIONS or len(text) > _LONGEST_OPTION or _NO_OPTION.search(text):
            raise UserError(
                f"untrusted configuration ({text[:60]!r} as option {count}): fairseq stores no "
                "interpolations ${...}, no control characters, and no lists of this size"
            )


def _options(value: Any) -> Iterator[Any]:
    """The names and values of a configuration and all that are nested in it."""
    value = vars(value) if isinstance(value, Namespace) else value
    value = [*value.items()] if isinstance(value, dict) else value
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from _options(each)
    else:
        yield value


def _check_size(state: Mapping[str, Any]) -> None:
    """Raises UserError where the options of a checkpoint are of a larger model than its weights:
    to build it could take hours, and all of the memory.
    """
    options = state.get("args") or section(state, "model") or {}
    options = dict(vars(options) if isinstance(options, Namespace) else options)
    weights = [each for each in state["model"].values() if isinstance(each, Tensor)]
    # Without weights only its options are of use: those of models that can be built.
    total = sum(each.numel() for each in weights) if weights else 10**9
    most_layers = len(weights) or 100
    for side, text in (("encoder", "source"), ("decoder", "target")):
        names = ("layers", "embed_dim", "ffn_embed_dim")
        layers, width, inner = (options.get(f"{side}_{name}") or 0 for name in names)
        if {type(layers), type(width), type(inner)} != {int}:
            continue  # fconv has a list of its layers as text
        longest = options.get(f"max_{text}_positions") or 0
        too_large = max(layers * width * inner, width) > total or layers > most_layers
        if too_large or longest > _MOST_POSITIONS:
            raise UserError(f"its options are of a larger {side} than its weights")


def _reason(error: Exception) -> str:
    # The safe loader's own words stand at the end of a paragraph of advice.
    text = str(error).rpartition("WeightsUnpickler error: ")[2]
    line = text.strip().split("\n")[0].split(". ")[0].rstrip(".")[:100]
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def load_safely(load: Callable[..., Dict[str, Any]]) -> Callable[..., Dict[str, Any]]:
    """``load(path, overrides, ...)`` whose configuration names no files elsewhere. Errors name the
    checkpoint: :class:`UserError` for one that is not fairseq's.
    """

    @functools.wraps(load)
    def wrapped(path: str, *args: Any, **kwargs: Any) -> Dict[str, Any]:
        try:
            state = load(path, *args, **kwargs)
            given = args[0] if args else kwargs.get("arg_overrides")
            confine(state, os.path.dirname(os.path.abspath(path)), given or {})
            _check_size(state)
            return state
        except (OSError, RuntimeError):
            raise
        except UserError as error:
            text = str(error)
            raise UserError(text if text.startswith(path) else f"{path}: {text}") from None
        except Exception as error:
            # fairseq takes any table for a checkpoint and stumbles where that first makes no sense.
            reason = _reason(error)
            raise UserError(f"{path}: not a checkpoint of fairseq-train ({reason})") from error

    return wrapped


class _Torch:
    """The module, as ``fairseq.checkpoint_utils`` sees it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    @staticmethod
    def load(file: Any, *args: Any, **kwargs: Any) -> Any:
        return read(file)


vars(checkpoint_utils)["torch"] = _Torch()
checkpoint_utils.load_checkpoint_to_cpu = load_safely(checkpoint_utils.load_checkpoint_to_cpu)
