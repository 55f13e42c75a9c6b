"""Loops of decoding on a CPU that torch has no operator for, in C++ (``cpu.cpp``).

``setup.py`` compiles them without torch's headers, so one build serves every version of torch. They
support float32 and float64 on a CPU, without gradients; int8 products support float32 only. In all
other cases decoding uses torch's operators (``layers/cache.py``, ``decoding/candidates.py``). Calls
release the GIL, so threads run in parallel.
"""

from __future__ import annotations

import ctypes
import logging
import threading
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..nn.attention import LogitTerms

logger = logging.getLogger(__name__)

_LOADING = threading.Lock()
_SOURCES = ("cpu.cpp", "step.inc", "int8.inc")
COLUMNS = 16  # rows of an int8 weight in one panel, as in int8.inc
_NAMES = {torch.float32: "float", torch.float64: "double"}


class _Attention(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("q", "new_keys", "new_values", "keys", "values")),
        *((name, ctypes.c_void_p) for name in ("slots", "bias", "content_bias", "key_padding")),
        *((name, ctypes.c_void_p) for name in ("out", "weights")),
        *((name, ctypes.c_int64) for name in ("q_stride", "new_keys_stride", "new_values_stride")),
        *((name, ctypes.c_int64) for name in ("slots_stride", "bias_stride")),
        *((name, ctypes.c_int64) for name in ("rows", "group", "count", "heads")),
        *((name, ctypes.c_int64) for name in ("key_dim", "value_dim")),
        ("scale", ctypes.c_double),
    ]


class _Candidates(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("logits", "sums", "scores")),
        *((name, ctypes.c_void_p) for name in ("totals", "entries", "parents")),
        *((name, ctypes.c_int64) for name in ("stride", "size", "sentences", "beams", "count")),
    ]


class _Product(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("x", "weight", "scale", "sums", "bias", "out")),
        *((name, ctypes.c_int64) for name in ("rows", "inputs", "outputs", "x_stride")),
        ("out_stride", ctypes.c_int64),
    ]


def serve(x: Tensor) -> bool:
    """Whether these loops support a decoding run over tensors such as ``x``."""
    return (
        x.device.type == "cpu"
        and x.dtype in _NAMES
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        and compiled()
    )


def compiled() -> bool:
    """Whether the loops are compiled for this system."""
    return _library() is not None


def _library() -> Any:
    with _LOADING:  # one warning, however many threads
        return _load()


@lru_cache(maxsize=1)
def _load() -> Optional[ctypes.CDLL]:
    folder = Path(__file__).parent
    checksum = zlib.crc32(b"".join((folder / name).read_bytes() for name in _SOURCES))
    for path in sorted(folder.glob("_cpu*.so")):
        try:
            library = ctypes.CDLL(str(path))
            library.sources.restype = ctypes.c_int64
            compiled_from = library.sources()
        except (OSError, AttributeError):  # built for another system, or an older version
            continue
        if compiled_from == checksum:
            library.free_slots.restype = ctypes.c_int64
            return library
    logger.warning(
        "beam search on this CPU takes about twice the time that it could: its loops in C++ are "
        "not compiled; install diet_mt again where there is a C++ compiler (make setup)"
    )
    return None


def _call(name: str, dtype: torch.dtype, *args: Any) -> None:
    getattr(_library(), f"{name}_{_NAMES[dtype]}")(*args)


def _rows(x: Tensor) -> Tensor:
    """``x`` (rows, H, D) with contiguous rows."""
    return x if x.stride(2) == 1 and x.stride(1) == x.size(2) else x.contiguous()


def free_slots(slots: Tensor, length: int, capacity: int) -> Optional[Tensor]:
    """A slot for each row, unused by the first ``length`` slots of all rows: (rows,) int32.

    None if fewer are free. ``slots``: (rows, N) int32, each below ``capacity``.
    """
    rows = slots.size(0)
    free = torch.empty(rows, dtype=torch.int32)
    count = _library().free_slots(
        ctypes.c_void_p(slots.data_ptr()),
        *(ctypes.c_int64(n) for n in (rows, slots.stride(0), length, capacity)),
        ctypes.c_void_p(free.data_ptr()),
    )
    return free if count == rows else None


def attend(
    q: Tensor,
    keys: Tensor,
    values: Tensor,
    terms: LogitTerms,
    *,
    count: int,
    scale: float,
    slots: Optional[Tensor] = None,
    new: Optional[Tuple[Tensor, Tensor]] = None,
    group: int = 1,
    need_weights: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:
    """softmax(scale * q k^T + terms) v for queries at one position.

    Args:
        q: (rows, H, D_k).
        keys, values: (slots, H * D_k) and (slots, H * D).
        terms: ``bias`` (H|1, 1, S), ``content_bias`` (1, H, rows, S) and ``key_padding`` (rows /
            group, S), contiguous; no other terms.
        count: keys of each row, S.
        scale: factor of q k^T.
        slots: (rows, N) int32 with N >= S, the slots of each row's keys, in the order of their
            positions; None: row r has the S slots from ``(r // group) * S`` on.
        new: keys (rows, H, D_k) and values (rows, H, D), first written to slot S - 1 of each row.
        group: rows per sentence, for ``key_padding`` and for None as ``slots``.
        need_weights: also return the weights.

    Returns:
        (rows, H * D), and the weights (H, rows, S) or None.

    Raises TypeError if the tensors differ in precision.
    """
    if len({each.dtype for each in (q, keys, values, *(new or ()))}) > 1:
        raise TypeError(f"one decoding run has one precision, not {q.dtype} and {keys.dtype}")
    rows, heads, key_dim = q.shape
    q = _rows(q)
    out = torch.empty(rows, values.size(-1), dtype=q.dtype)
    weights = torch.empty(heads, rows, count, dtype=q.dtype) if need_weights else None
    call = _Attention(
        q=q.data_ptr(),
        keys=keys.data_ptr(),
        values=values.data_ptr(),
        out=out.data_ptr(),
        q_stride=q.stride(0),
        rows=rows,
        group=group,
        count=count,
        heads=heads,
        key_dim=key_dim,
        value_dim=values.size(-1) // heads,
        scale=scale,
    )
    if slots is not None:
        call.slots, call.slots_stride = slots.data_ptr(), slots.stride(0)
    if new is not None:
        k, v = (_rows(each) for each in new)
        call.new_keys, call.new_keys_stride = k.data_ptr(), k.stride(0)
        call.new_values, call.new_values_stride = v.data_ptr(), v.stride(0)
    bias, content_bias = terms.bias, terms.content_bias
    if bias is not None:
        bias = bias.to(q.dtype)
        bias = bias if bias.stride(2) == 1 else bias.contiguous()
        call.bias, call.bias_stride = bias.data_ptr(), bias.stride(0) if bias.size(0) > 1 else 0
    if content_bias is not None:
        content_bias = content_bias.to(q.dtype).contiguous()
        call.content_bias = content_bias.data_ptr()
    if terms.key_padding is not None:
        call.key_padding = terms.key_padding.data_ptr()
    if weights is not None:
        call.weights = weights.data_ptr()
    _call("attend", q.dtype, ctypes.byref(call))
    return out, weights


def log_sums(logits: Tensor) -> Tensor:
    """``logits`` (rows, V) -> maximum m and log sum e^(logit - m) of each row: (rows, 2)."""
    sums = logits.new_empty(logits.size(0), 2)
    sizes = (ctypes.c_int64(n) for n in (logits.size(0), logits.stride(0), logits.size(1)))
    pointers = ctypes.c_void_p(logits.data_ptr()), ctypes.c_void_p(sums.data_ptr())
    _call("log_sums", logits.dtype, pointers[0], *sizes, pointers[1])
    return sums


def best(logits: Tensor, sums: Tensor, scores: Tensor, count: int) -> Tuple[Tensor, Tensor, Tensor]:
    """The ``count`` best continuations of each sentence, in descending order.

    Of equal ones, that of the first hypothesis and entry comes first.

    Args:
        logits: (B * K, V).
        sums: (B * K, 2), by :func:`log_sums`.
        scores: (B, K), summed log-probabilities of the hypotheses.
        count: at most K * V.

    Returns:
        Summed log-probabilities, entries and indices of hypotheses, (B, count) each.
    """
    sentences, beams = scores.shape
    scores = scores.to(logits.dtype).contiguous()
    totals = logits.new_empty(sentences, count)
    entries, parents = torch.empty(2, sentences, count, dtype=torch.long)
    call = _Candidates(
        logits=logits.data_ptr(),
        sums=sums.data_ptr(),
        scores=scores.data_ptr(),
        totals=totals.data_ptr(),
        entries=entries.data_ptr(),
        parents=parents.data_ptr(),
        stride=logits.stride(0),
        size=logits.size(1),
        sentences=sentences,
        beams=beams,
        count=count,
    )
    _call("best", logits.dtype, ctypes.byref(call))
    return totals, entries, parents


def pack(weight: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    """``weight`` (N, E) in int8, as :func:`multiply` reads it.

    Returns integers from -64 to 64, (N' / 16, E' / 4, 16, 4), and for each row its scale and the
    sum of its integers, (N',) each. N' and E' are N and E rounded up to multiples of 16 and 4.
    """
    scale = weight.abs().amax(1).clamp(min=1e-30) / 64
    more = -weight.size(0) % COLUMNS
    integers = F.pad((weight / scale[:, None]).round(), (0, -weight.size(1) % 4, 0, more))
    panels = integers.to(torch.int8).unflatten(0, (-1, COLUMNS)).unflatten(2, (-1, 4))
    return panels.transpose(1, 2).contiguous(), F.pad(scale, (0, more)), integers.sum(1)


def multiply(
    x: Tensor, weight: Tensor, scale: Tensor, sums: Tensor, bias: Tensor, out: Tensor
) -> Tensor:
    """x W^T + bias, written to ``out``, with W in int8. Runs in the calling thread alone.

    Args:
        x: (rows, E) in float32; each row is quantized to 256 values from its minimum to its
            maximum.
        weight, scale, sums: the result of :func:`pack`.
        bias: (N',), as long as ``scale``.
        out: (rows, N) in float32, with contiguous rows.

    Raises TypeError for another precision or device.
    """
    if not (x.device.type == "cpu" and x.dtype == scale.dtype == torch.float32):
        raise TypeError(f"int8 is computed from float32 on a CPU, not {x.dtype} on {x.device}")
    x = x if x.stride(1) == 1 else x.contiguous()
    call = _Product(
        x=x.data_ptr(),
        weight=weight.data_ptr(),
        scale=scale.data_ptr(),
        sums=sums.data_ptr(),
        bias=bias.data_ptr(),
        out=out.data_ptr(),
        rows=x.size(0),
        inputs=x.size(1),
        outputs=out.size(1),
        x_stride=x.stride(0),
        out_stride=out.stride(0),
    )
    _call("multiply", x.dtype, ctypes.byref(call))
    return out
