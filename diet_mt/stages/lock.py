"""One process at a time in a folder, by ``filelock``.

The lock is the operating system's: it ends with the process that holds it, however that ends. Who
holds it stands beside it, for those who are refused.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from ..errors import UserError
from ..files import read_text, write_text
from .progress import say

_LOCK, _HOLDER = ".lock", ".holder"
_UNNAMED = "another process"
OWN_FILES = (_LOCK, _HOLDER)
_HELD: set[tuple[int, Path]] = set()  # by a thread of this process
# It reports every lock that it takes, and fairseq's libraries may have all reports shown.
logging.getLogger("filelock").setLevel(logging.WARNING)


@contextmanager
def alone(folder: Path, wait_s: float = 0) -> Iterator[None]:
    """While it lasts, no other process or thread is in here with this folder, which must be there;
    this one may enter again. Raises UserError where another does not leave in time, or the folder
    cannot be written.

    Args:
        wait_s: Seconds to wait for another process to leave; ``math.inf``: as long as it takes.
    """
    if (own := (threading.get_ident(), folder.resolve())) in _HELD:
        yield
        return
    holder = folder / _HOLDER
    lock = FileLock(folder / _LOCK)
    try:
        (folder / _LOCK).touch()  # where that is not possible, filelock would go on trying
        if not _acquire_at_once(lock, holder):
            if wait_s:
                say(f"{folder}: waiting for {_named(holder)}")
            # filelock waits for ever where the time is negative.
            lock.acquire(timeout=wait_s if wait_s < float("inf") else -1, poll_interval=0.1)
    except Timeout:
        raise UserError(
            f"{folder}: {_named(holder)} is at work on it; wait for its end, or end it"
        ) from None
    except OSError as error:
        raise UserError(
            f"{folder}: cannot be written ({error.strerror or error}); choose another folder"
        ) from None
    try:
        _HELD.add(own)
        write_text(holder, _own_name() + "\n")
        yield
    finally:
        _HELD.discard(own)
        holder.unlink(missing_ok=True)
        lock.release()


def _acquire_at_once(lock: FileLock, holder: Path) -> bool:
    """Whether it could be. A lock without its holder's name, or with that of a process that was
    killed, is being taken or given back this very moment: the one or the other is waited for, 1 s
    at most.
    """
    end = time.monotonic() + 1
    while True:
        try:
            lock.acquire(timeout=0)
            return True
        except Timeout:
            if _named(holder) != _UNNAMED or time.monotonic() > end:
                return False
        time.sleep(0.01)


def _own_name() -> str:
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    return f"process {os.getpid()} on {os.uname().nodename} ({command[:200]}), since {since},"


def _named(holder: Path) -> str:
    """Who holds the lock; not a process that was killed before another took it."""
    try:
        said = read_text(holder).strip()
    except OSError:
        said = ""
    found = re.match(r"process (\d+) on (\S+) ", said)
    killed = found and found[2] == os.uname().nodename and not _is_there(int(found[1]))
    return said if found and not killed else _UNNAMED


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's
    return True
