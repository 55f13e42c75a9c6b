"""Runs a long command that says nothing of its own: tells how much it has written so far.

Command: ``python -m diet_mt.stages.watch --name NAME --log FILE --grows PATH COMMAND...``: what the
command says goes to FILE, and its last line is shown when it fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from ..command_line import run
from ..errors import UserError
from .orphans import end_with_parent
from .progress import say, seconds_between


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files below a folder; 0 if there is none."""
    if path.is_dir():
        return sum(size_of(entry) for entry in path.iterdir())
    try:
        return path.stat().st_size
    except FileNotFoundError:  # not yet, or no longer
        return 0


def watch(name: str, command: list[str], log: Path, grows: Path) -> None:
    """Runs ``command`` to its end.

    Raises:
        UserError: it cannot be run, or fails.
    """
    started = time.monotonic()
    with open(log, "wb") as output:
        try:
            process = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                # What a Python program says comes in the order in which it says it.
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                preexec_fn=end_with_parent,
            )
        except OSError as error:
            raise UserError(f"{command[0]}: cannot be run ({error.strerror})") from None
    while True:
        try:
            status = process.wait(seconds_between())
            break
        except subprocess.TimeoutExpired:
            megabytes = size_of(grows) / 1e6
            say(f"{name}: {megabytes:,.1f} MB so far, {time.monotonic() - started:.0f} s")
    if status:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().split("\n")
        ended = f"killed by signal {-status}" if status < 0 else lines[-1]
        raise UserError(f"{name} failed: {ended.removeprefix('error: ')} (all of it in {log})")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="diet_mt.stages.watch", description="run and report")
    parser.add_argument("--name", required=True, help="what the command does")
    parser.add_argument("--log", type=Path, required=True, help="takes what it says")
    parser.add_argument("--grows", type=Path, required=True, help="file or folder that it writes")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args(argv)
    return run(lambda: watch(args.name, args.command, args.log, args.grows))


if __name__ == "__main__":
    sys.exit(main())
