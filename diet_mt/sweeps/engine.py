"""A sweep from beginning to end: prepare, runs, report."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

from ..errors import UserError
from ..stages.child import start
from ..stages.progress import announce, say
from .sweep import Run, Sweep
from .variables import Command, shown
from .work import argv_of, clock, end

# Does all runs, and returns a line for each that failed; nothing: the runs go on without us.
Runner = Callable[[Sequence[Run]], list[str] | None]


def go(sweep: Sweep, runner: Runner) -> int:
    """Does what is not done yet, and returns the status: 0 only where nothing failed.

    Raises UserError where a run failed. Then there is no report.
    """
    began = time.monotonic()
    announce(f"== 1/3 prepare: {len(sweep.prepare)} commands")
    if status := _one_by_one(sweep.prepare, sys.stderr):
        return status
    announce(f"== 2/3 runs: {len(sweep.runs)}")
    failures = runner(sweep.runs)
    if failures is None:
        say("the runs are submitted; the same command again shows how they are")
        return 0
    if failures:
        for failure in failures[:-1]:
            announce(f"error: {failure}")
        raise UserError(failures[-1])
    announce(f"== 3/3 report, after {clock(time.monotonic() - began)}")
    return _one_by_one(sweep.report, sys.stdout)


def dry_run(sweep: Sweep, ask: Callable[[Command], list[str]]) -> Iterator[str]:
    """The commands of a sweep, and below each as comments what it would start; ``ask``: what a
    command would start, line by line.
    """
    for title, commands in (
        ("prepare", sweep.prepare),
        *((f"run {run.name}", run.commands) for run in sweep.runs),
        ("report", sweep.report),
    ):
        yield f"# {title}"
        for words in commands:
            yield shown(words)
            yield from (f"#   {line}" for line in ask(words))


def _one_by_one(commands: Sequence[Command], to: TextIO) -> int:
    """Runs commands that speak for themselves; returns the status of the first that fails, or 0."""
    to.flush()
    for words in commands:
        say(shown(words))
        process = start(argv_of(words), to.buffer, err=sys.stderr.buffer)
        try:
            status = process.wait()
        finally:
            if process.poll() is None:
                end([process])
        if status < 0:
            raise UserError(f"{shown(words)}: killed by signal {-status}")
        if status:
            return status
    return 0
