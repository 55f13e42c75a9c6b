"""Freed memory is retained where glibc's defaults apply, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from diet_mt.nn import allocator
from diet_mt.nn.allocator import SHAPES, keep_memory, limit_shapes


class Library:
    """A C library that records its settings."""

    def __init__(self, result: int = 1) -> None:
        self.result = result
        self.settings: dict[int, int] = {}

    def mallopt(self, name: int, value: int) -> int:
        self.settings[name] = value
        return self.result


@pytest.mark.parametrize(
    ("environment", "library", "name", "expected"),
    [
        ({}, Library(), "glibc", True),
        ({"DIET_MT_KEEP_MEMORY": "0"}, Library(), "glibc", False),
        ({"DIET_MT_KEEP_MEMORY": "1"}, Library(), "glibc", True),
        ({"MALLOC_ARENA_MAX": "2"}, Library(), "glibc", False),
        ({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}, Library(), "glibc", False),
        ({"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}, Library(), "glibc", True),
        ({"LD_PRELOAD": "/usr/lib/libjemalloc.so.2"}, Library(), "glibc", False),
        ({"LD_PRELOAD": "/usr/lib/libiomp5.so"}, Library(), "glibc", True),
        ({}, Library(), "", False),
        ({}, Library(result=0), "glibc", False),
        ({}, object(), "glibc", False),
    ],
)
def test_where_memory_is_retained(
    environment: dict[str, str],
    library: Any,
    name: str,
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With glibc, unless the user has settings of their own."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(allocator.platform, "libc_ver", lambda: (name, "2.36"))
    assert keep_memory(environment, library) is expected
    if expected:
        assert library.settings == {-4: 0, -1: -1}


def test_the_number_of_shapes_is_limited_unless_the_user_sets_it() -> None:
    given = {next(iter(SHAPES)): "7"}
    environment = dict(given)
    limit_shapes(environment)
    assert environment == {**SHAPES, **given}


SCRIPT = """
import ctypes, resource, sys
from diet_mt.nn.allocator import keep_memory, limit_shapes
limit_shapes()
if not keep_memory({}):
    sys.exit("not here")
import torch
class Info(ctypes.Structure):
    _fields_ = [(str(number), ctypes.c_size_t) for number in range(10)]
library = ctypes.CDLL(None)
library.mallinfo2.restype = Info
def used():
    info = library.mallinfo2()
    return getattr(info, "4") + getattr(info, "7")  # hblkhd + uordblks: by mmap and in the heap
weight = torch.ones(128, 128)
def grown(*shapes):
    before = used()
    for rows in range(*shapes):
        torch.ops.mkldnn._linear_pointwise(torch.ones(rows, 128), weight, None, "none", [], "")
    return used() - before
grown(200, 201)
first, then = grown(201, 301), grown(301, 601)
for turn in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.ones(16 << 20)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(first, then, faults)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc runs on Linux only")
def test_in_a_process() -> None:
    """Products of many shapes, as in beam search, cache few of them; freed memory is retained."""
    environment = {name: value for name, value in os.environ.items() if name not in SHAPES}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if "not here" in done.stderr or "mallinfo2" in done.stderr:
        pytest.skip("another C library")
    first, then, faults = map(int, done.stdout.split())
    assert then < first / 2  # bytes for 300 further shapes, for the first 100
    # Ten tensors of 64 MiB, one after the other: 16,384 small pages each, or 32 large ones.
    assert faults < 100
