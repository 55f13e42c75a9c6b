"""Memory is kept where glibc decides, and nowhere else."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from typing import Any

import pytest

import diet_mt.nn.allocator as allocator
from diet_mt.nn.allocator import REMEMBERED, forget_shapes, keep_memory


class Library:
    """A C library that keeps what it is told."""

    def __init__(self, answer: int = 1) -> None:
        self.answer = answer
        self.told: dict[int, int] = {}

    def mallopt(self, name: int, value: int) -> int:
        self.told[name] = value
        return self.answer


@pytest.fixture
def glibc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(allocator.platform, "libc_ver", lambda: ("glibc", "2.36"))


@pytest.mark.usefixtures("glibc")
def test_what_is_set() -> None:
    library = Library()
    assert keep_memory({}, library)
    assert library.told == {-4: 0, -1: -1}


@pytest.mark.usefixtures("glibc")
@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"DIET_MT_KEEP_MEMORY": "0"}, False),
        ({"DIET_MT_KEEP_MEMORY": "1"}, True),
        ({"MALLOC_ARENA_MAX": "2"}, False),
        ({"MALLOC_TRIM_THRESHOLD_": "131072"}, False),
        ({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}, False),
        ({"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}, True),
        ({"LD_PRELOAD": "/usr/lib/libjemalloc.so.2"}, False),
        ({"LD_PRELOAD": "/usr/lib/libiomp5.so"}, True),
    ],
    ids=str,
)
def test_what_others_set_is_left_alone(environment: dict[str, str], expected: bool) -> None:
    library = Library()
    assert keep_memory(environment, library) is expected
    assert bool(library.told) is expected


@pytest.mark.parametrize(
    ("system", "libc"), [("linux", ("", "")), ("darwin", ("", "")), ("win32", ("", ""))]
)
def test_other_systems(monkeypatch: pytest.MonkeyPatch, system: str, libc: tuple[str, str]) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(allocator.platform, "libc_ver", lambda: libc)
    library = Library()
    assert not keep_memory({}, library)
    assert library.told == {}


@pytest.mark.usefixtures("glibc")
@pytest.mark.parametrize("library", [Library(answer=0), object()], ids=["refuses", "has-none"])
def test_a_library_that_cannot(library: Any) -> None:
    assert not keep_memory({}, library)


def test_shapes_are_forgotten_unless_the_user_says_otherwise() -> None:
    own = {next(iter(REMEMBERED)): "7"}
    environment = dict(own)
    forget_shapes(environment)
    assert environment == {**REMEMBERED, **own}


SHAPES = """
import ctypes
from diet_mt.nn.allocator import forget_shapes
forget_shapes()
import torch
class Info(ctypes.Structure):
    _fields_ = [(str(number), ctypes.c_size_t) for number in range(10)]
library = ctypes.CDLL(None)
library.mallinfo2.restype = Info
def used():
    info = library.mallinfo2()
    return getattr(info, "4") + getattr(info, "7")  # from outside the heap, and in it
weight = torch.ones(128, 128)
def grown(*shapes):
    before = used()
    for rows in range(*shapes):
        torch.ops.mkldnn._linear_pointwise(torch.ones(rows, 128), weight, None, "none", [], "")
    return used() - before
grown(200, 201)
print(grown(201, 301), grown(301, 601))
"""


@pytest.mark.skipif(
    not (allocator._is_glibc() and hasattr(ctypes.CDLL(None), "mallinfo2")), reason="needs glibc"
)
def test_products_of_many_shapes_leave_few_behind() -> None:
    """As in beam search, where hypotheses that end make batches smaller step by step."""
    environment = {name: value for name, value in os.environ.items() if name not in REMEMBERED}
    command = [sys.executable, "-c", SHAPES]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    first, then = map(int, done.stdout.split())
    assert then < first / 2  # bytes of 100 shapes, of 300 more


SCRIPT = """
import resource, sys
from diet_mt.nn.allocator import keep_memory
if sys.argv[1] == "keep" and not keep_memory({}):
    sys.exit("not here")
import torch
for turn in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.ones(16 << 20)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(faults)
"""


def page_faults(how: str) -> int:
    """Pages touched for the first time by ten tensors of 64 MiB, one after the other."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, text=True)
    if "not here" in done.stderr:
        pytest.skip("another C library, or set up by the user")
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="glibc is for Linux")
def test_memory_is_kept() -> None:
    # 64 MiB are 16,384 small pages or 32 large ones.
    assert page_faults("keep") < 100
