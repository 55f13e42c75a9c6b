"""Child processes that end with this one: programs, workers and functions.

``python -m diet_mt.system.process MODULE ARGUMENT...`` runs a module. If one of its processes is
killed, its children are, too.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import IO, TypeVar

import psutil

from . import progress
from .errors import UserError
from .progress import tail_of

T = TypeVar("T")
R = TypeVar("R")

CHUNK = 2000  # lines that a worker gets at a time
_AHEAD = 3  # chunks submitted for each worker
PATIENCE = 5.0  # seconds for a process to end after SIGTERM
_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG in <sys/prctl.h>
_CHECKOUT = Path(__file__).resolve().parents[2]
_LAST = 4000  # characters of a log in which the reason of a failure is searched
_NO_ROOM = 1 << 24  # bytes: with less, a checkpoint does not fit
# Messages of the operating system and of torch for a full disk.
_FULL = re.compile(
    r"No space left on device|File too large|Disk quota exceeded|PytorchStreamWriter failed writing"
    r"|unexpected pos \d+ vs \d+"
)
_UNFINISHED = ("*.tmp", "*.part")


def end_with_parent() -> None:
    """Makes the kernel kill this process when its parent dies (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)


def run_module(module: str, arguments: list[str]) -> None:
    """Runs a module as ``python -m`` does, in this process; its forks end with it."""
    os.register_at_fork(after_in_child=end_with_parent)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def module(name: str, words: Sequence[str]) -> list[str]:
    """The command that runs a module in the same Python."""
    return [sys.executable, "-m", name, *words]


def python_module(name: str, *words: str) -> list[str]:
    """As :func:`module`; in addition, all processes of the module end with their parents."""
    return module(f"{__package__}.process", [name, *words])


def environment() -> dict[str, str]:
    """Environment of a child: unbuffered output in UTF-8, and this copy of the package."""
    variables = os.environ | {"PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}
    variables["PYTHONIOENCODING"] = "utf-8:backslashreplace"
    if str(_CHECKOUT) not in sysconfig.get_paths().values():  # not an installed package
        path = filter(None, [str(_CHECKOUT), variables.get("PYTHONPATH")])
        variables["PYTHONPATH"] = os.pathsep.join(path)
    return variables


def start(
    command: Sequence[str],
    out: IO[bytes],
    *,
    err: IO[bytes] | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Starts a program that ends with this one. Raises UserError if it cannot be run."""
    try:
        return subprocess.Popen(
            command,
            stdout=out,
            stderr=err or subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment() if env is None else env,
            preexec_fn=end_with_parent,
        )
    except OSError as error:
        raise UserError(f"{command[0]}: cannot be run ({error.strerror})") from None


def run_child(
    command: Sequence[str],
    *,
    out: IO[bytes],
    tell: Callable[[], None] = lambda: None,
    err: IO[bytes] | None = None,
) -> int:
    """Runs a program and returns its exit status, negative if a signal ended it.

    ``out``: file for stdout, also for stderr without ``err``; ``tell``: called every EVERY_S.
    """
    process = start(command, out, err=err)
    try:
        while True:
            try:
                return process.wait(progress.EVERY_S)
            except subprocess.TimeoutExpired:
                tell()
    finally:
        if process.poll() is None:  # interrupted
            end([process])


def end(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """Ends processes and descendants: SIGTERM, then SIGKILL after PATIENCE or an interruption."""
    alive: list[psutil.Process] = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            parent = psutil.Process(process.pid)
            alive += [*parent.children(recursive=True), parent]
    try:
        for each in alive:
            with suppress(psutil.NoSuchProcess):
                each.terminate()
        _, alive = psutil.wait_procs(alive, PATIENCE)
    finally:
        for each in alive:
            with suppress(psutil.NoSuchProcess):
                each.kill()


def why(status: int, log: Path) -> str:
    """One line with the reason why a program failed, its ``log`` and, if the disk is full, the file
    that could not be written.
    """
    text = tail_of(log).strip()[-_LAST:]
    reason = text.split("\n")[-1].removeprefix("error: ") or f"status {status}"
    if status < 0:
        reason = f"killed by signal {-status}" + (", out of memory?" if status == -9 else "")
    elif is_full(log.parent, text):
        files = [path for pattern in _UNFINISHED for path in log.parent.glob(pattern)]
        newest = max(files, key=lambda path: path.stat().st_mtime_ns, default=None)
        target = newest.with_suffix("") if newest else log.parent
        reason = f"no space is left for {target}; make room and run again"
    return f"{reason} (log: {log})"


def is_full(folder: Path, output: str) -> bool:
    """Whether the disk of ``folder`` is full, by a failed program's ``output`` or free space."""
    return bool(_FULL.search(output)) or shutil.disk_usage(folder).free < _NO_ROOM


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files below a folder; 0 if there is none."""
    if path.is_dir():
        return sum(size_of(entry) for entry in path.iterdir())
    try:
        return path.stat().st_size
    except FileNotFoundError:  # not yet, or no longer
        return 0


def _growth(name: str, path: Path) -> Callable[[], None]:
    return progress.teller(name, lambda: f"{size_of(path) / 1e6:,.1f} MB so far")


def watch(name: str, command: Sequence[str], log: Path, grows: Path) -> None:
    """Runs a program, logs it and prints the size of ``grows``. Raises UserError if it fails."""
    with open(log, "wb") as output:
        status = run_child(command, out=output, tell=_growth(name, grows))
    if status:
        raise UserError(f"{name} failed: {why(status, log)}")


def apart(name: str, function: Callable[..., object], *arguments: object, grows: Path) -> None:
    """Calls a function in its own process, and prints the size of ``grows`` meanwhile.

    For libraries that block all threads. Raises :class:`UserError` if the process is killed.
    """
    tell = _growth(name, grows)
    with ProcessPoolExecutor(1, initializer=begin_worker) as executor:
        try:
            worker = executor.submit(os.getpid).result()
            future = executor.submit(function, *arguments)
            try:
                while not wait([future], progress.EVERY_S).done:
                    tell()
            except BaseException:  # interrupted: the library would go on to its end
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGTERM)
                raise
            future.result()
        except BrokenProcessPool:
            raise UserError(f"{name}: its process was killed (out of memory?)") from None


def in_order(
    function: Callable[[list[T]], R], items: Iterable[T], workers: int, chunk: int = CHUNK
) -> Iterator[R]:
    """Yields ``function(items)`` for successive lists of ``chunk`` items, in their order.

    Memory is bounded, and a killed worker raises :class:`UserError`: ``multiprocessing.Pool.imap``
    reads its input at once, and waits forever.
    """
    iterator = iter(items)
    chunks = iter(lambda: list(islice(iterator, chunk)), [])
    if workers == 1:
        yield from map(function, chunks)
        return
    executor = ProcessPoolExecutor(workers, initializer=begin_worker)
    pending: deque[Future[R]] = deque()
    try:
        for piece in chunks:
            pending.append(executor.submit(function, piece))
            if len(pending) >= workers * _AHEAD:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except BrokenProcessPool:
        raise UserError("a worker was killed (out of memory?); give fewer --workers") from None
    finally:
        executor.shutdown(cancel_futures=True)


def cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def begin_worker() -> None:
    """Leaves Ctrl-C to the parent; a worker ends on SIGTERM and with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent()  # immediate, also within a library; the thread is for a parent already dead
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


if __name__ == "__main__":
    run_module(sys.argv[1], sys.argv[2:])
