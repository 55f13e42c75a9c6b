"""Freed memory kept for the next tensor, on Linux with glibc.

From a size on that moves between 128 KiB and 32 MiB glibc asks the system for each block anew and
gives it back when freed, as it does with the end of its heap. Each page of a new block is then
zeroed at its first touch, a tenth of a training step and more. Here blocks of up to 32 MiB, the
most that glibc allows, come from the heap, which grows in large pieces and never shrinks. Larger
blocks still go back, so one large batch is not kept for good.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Mapping
from typing import Any, Optional

SWITCH = "DIET_MT_KEEP_MEMORY"

# What mallopt sets, as glibc numbers it (malloc.h), and the values, in bytes; -1: never.
_MMAP_THRESHOLD = (-3, 32 << 20)
_TRIM_THRESHOLD = (-1, -1)
_TOP_PAD = (-2, 64 << 20)


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
    settings = (_MMAP_THRESHOLD, _TRIM_THRESHOLD, _TOP_PAD)
    return all(mallopt(name, value) == 1 for name, value in settings)


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
