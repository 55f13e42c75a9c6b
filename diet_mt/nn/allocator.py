"""Memory of the process: freed blocks kept for the next tensor, few products of oneDNN remembered.

glibc asks the system for each block above 32 MiB anew and gives it back when freed, as it does with
the end of its heap; each page is then zeroed at its first touch. Six tensors of 64 MiB written and
freed take 126 ms that way and 48 ms from a heap that never shrinks (one core of an Intel Xeon); a
training step of a base model touches 3,700 new pages instead of 18,500, its peak the same. Over
batches of many shapes the heap grows further: a tiny masked language model has 2.1 GB after 200
updates, without this 1.2.

oneDNN keeps what it has prepared for a product of one shape, and torch keeps it again: 1,024 shapes
each, 0.4 MiB a shape. In beam search the number of rows changes from step to step, and a shape
hardly comes back: decoding 20,000 sentences by a tiny model grew from 495 to 1,269 MiB. With 64
shapes, and runs that free their tensors, it is constant: 823 MiB after 5,000 and after 20,000 of
another corpus, in larger batches.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, Optional

# Shapes that torch and oneDNN remember; read at their first product.
REMEMBERED = {"LRU_CACHE_CAPACITY": "64", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64"}
SWITCH = "DIET_MT_KEEP_MEMORY"

# What mallopt sets, as glibc numbers it (malloc.h): no block from outside the heap, and an end of
# the heap that is never (-1) given back.
_SETTINGS = {-4: 0, -1: -1}  # M_MMAP_MAX, M_TRIM_THRESHOLD


def forget_shapes(environment: MutableMapping[str, str] = os.environ) -> None:
    """Sets REMEMBERED for the process, unless the user has."""
    for name, shapes in REMEMBERED.items():
        environment.setdefault(name, shapes)


def keep_memory(environment: Mapping[str, str] = os.environ, library: Optional[Any] = None) -> bool:
    """Sets this up for the process; returns whether it did.

    Does nothing on other systems and with other C libraries; where the user sets up memory
    (``MALLOC_*``, ``GLIBC_TUNABLES``) or preloads an allocator; and with ``DIET_MT_KEEP_MEMORY=0``.
    ``library``: the C library, for tests.
    """
    if not (_is_glibc() and _is_for_us(environment)):
        return False
    try:
        mallopt = (library or ctypes.CDLL(None)).mallopt
    except (AttributeError, OSError):
        return False
    return all(mallopt(name, value) == 1 for name, value in _SETTINGS.items())


def _is_glibc() -> bool:
    return sys.platform == "linux" and platform.libc_ver()[0] == "glibc"


def _is_for_us(environment: Mapping[str, str]) -> bool:
    """Whether nobody else decides about memory."""
    return (
        environment.get(SWITCH, "") != "0"
        and not any(name.startswith("MALLOC_") for name in environment)
        and "malloc" not in environment.get("GLIBC_TUNABLES", "")
        and "malloc" not in environment.get("LD_PRELOAD", "")  # jemalloc, tcmalloc, mimalloc
    )
