"""One run at a time: locks an open file that the calling shell and all its children hold.

The lock lives as long as any of them, so it also keeps a second run waiting for the processes that
an interrupted one left behind. Command: ``python -m diet_mt.stages.lock DESCRIPTOR SECONDS NAME``.
"""

from __future__ import annotations

import fcntl
import sys
import time

from ..command_line import run
from ..errors import UserError
from .progress import say

_AGAIN = 0.2  # seconds


def lock(descriptor: int, seconds: float, name: str) -> None:
    """Locks the open file; waits for others who hold it, up to so many seconds.

    Raises:
        UserError: they did not end in time.
    """
    end, waits = time.monotonic() + seconds, False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= end:
                raise UserError(f"{name}: another run is at work on it; wait for its end") from None
        if not waits:
            say(f"{name}: waiting for another run, or what is left of one, to end")
            waits = True
        time.sleep(_AGAIN)


def main(argv: list[str] | None = None) -> int:
    descriptor, seconds, name = sys.argv[1:] if argv is None else argv
    return run(lambda: lock(int(descriptor), float(seconds), name))


if __name__ == "__main__":
    sys.exit(main())
