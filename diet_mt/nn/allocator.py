"""Memory settings of the process: retained blocks, and a small cache of oneDNN plans.

glibc maps each block above 32 MiB anew and returns freed blocks, and the free end of its heap, to
the system, which zeroes each page again at its next touch. Writing and freeing six tensors of 64
MiB takes 126 ms that way, and 48 ms from a heap that never shrinks (one core of an Intel Xeon); a
training step of a base model touches 3,700 new pages instead of 18,500, with the same peak. With
batches of many shapes the heap grows further: a tiny masked language model has 2.1 GB after 200
updates, and 1.2 GB without these settings.

oneDNN caches a plan for each shape of a product, and torch caches it again: 1,024 shapes each, 0.4
MiB per shape. In beam search the number of rows changes between steps, and shapes rarely recur: a
tiny model that decoded 20,000 sentences grew from 495 to 1,269 MiB. With 64 shapes, and runs that
free their tensors, memory is constant: 823 MiB after 5,000 and after 20,000 sentences.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, Optional

# Numbers of shapes that torch and oneDNN cache; both read them at their first product.
SHAPES = {"LRU_CACHE_CAPACITY": "64", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64"}
SWITCH = "DIET_MT_KEEP_MEMORY"
# Parameters of mallopt (malloc.h) and their values: M_MMAP_MAX, no block outside the heap;
# M_TRIM_THRESHOLD, the end of the heap is never (-1) returned.
_SETTINGS = {-4: 0, -1: -1}


def limit_shapes(environment: MutableMapping[str, str] = os.environ) -> None:
    """Adds ``SHAPES`` to the environment, except variables that are already set."""
    for name, shapes in SHAPES.items():
        environment.setdefault(name, shapes)


def keep_memory(environment: Mapping[str, str] = os.environ, library: Optional[Any] = None) -> bool:
    """Makes malloc retain freed memory; returns whether that succeeded.

    Changes nothing on systems other than Linux with glibc, with ``DIET_MT_KEEP_MEMORY=0``, or if
    the user configures malloc (``MALLOC_*``, ``GLIBC_TUNABLES``) or preloads an allocator.
    ``library``: the C library, for tests.
    """
    configured = (
        environment.get(SWITCH, "") == "0"
        or any(name.startswith("MALLOC_") for name in environment)
        or "malloc" in environment.get("GLIBC_TUNABLES", "")
        or "malloc" in environment.get("LD_PRELOAD", "")  # jemalloc, tcmalloc, mimalloc
    )
    if configured or sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        return False
    try:
        mallopt = (library or ctypes.CDLL(None)).mallopt
    except (AttributeError, OSError):
        return False
    return all(mallopt(name, value) == 1 for name, value in _SETTINGS.items())
