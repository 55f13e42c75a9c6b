"""Runs on this machine, side by side: the commands of each one after the other, and what they say
in ``FOLDER/sweep.log``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from glob import glob
from pathlib import Path

import psutil
from tqdm import tqdm

from ..errors import UserError
from ..stages.child import environment, module, start, tail_of
from ..stages.pool import cores
from ..stages.progress import status_of
from .sweep import Run
from .variables import Command, shown

PROGRAM = "diet-mt"
LOG = "sweep.log"
PATIENCE = 5.0  # seconds that a process has to end by itself
_WIDTH = 100  # characters of a status
_PAUSE = 0.1  # seconds between looks at the processes


def program(word: str) -> str | None:
    """Where a program is: beside this Python first, as in an environment that is not active."""
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return shutil.which(word, path=places)


def with_files(words: Command) -> list[str]:
    """A command with the names of files for each ``*``, as a shell has it."""
    return [
        file for word in words for file in (sorted(glob(word)) if "*" in word else ()) or [word]
    ]


def argv_of(words: Command) -> list[str]:
    """A command as the operating system takes it."""
    name, *files = with_files(words)
    if name == PROGRAM:
        return module("diet_mt", files)
    return [program(name) or name, *files]


def end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ends processes and all that they have started: politely first, and at once where that is
    interrupted.
    """
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


def tail(path: Path) -> list[str]:
    """The last lines of a file, without those that are empty; none where there is no file."""
    return [line.strip() for line in tail_of(path).split("\n") if line.strip()]


def training(folder: Path, since: float) -> str:
    """How far a training is by its log; nothing where that is older than ``since`` (Unix time)."""
    log = folder / "train.log"
    if log.is_file() and log.stat().st_mtime >= since:
        return status_of(tail_of(log), before="")
    return ""


class Work:
    """A run under way, in processes of its own."""

    def __init__(self, run: Run, environment: Mapping[str, str], log: str = LOG) -> None:
        self.run, self.log = run, run.folder / log
        self._environment = environment
        self._left = list(run.commands)
        self._begun = time.time()
        self.process: subprocess.Popen[bytes] | None = None
        self.words: Command = ()  # under way
        self.failure = ""  # one line: which command failed, and its last word

    def poll(self) -> bool:
        """Whether all has ended; begins the next command where one has."""
        status = self.process.poll() if self.process else 0
        if status is None:
            return False
        if status:
            said = tail(self.log)[-1:]
            if status < 0:
                self._fail(f"killed by signal {-status}")
            elif not said or said[0].startswith("== "):  # it has not said why
                self._fail(f"ended with status {status}")
            else:
                self._fail(said[0])
        elif self._left and not self.failure:
            self._begin(self._left.pop(0))
            return self.failure != ""
        return True

    def _begin(self, words: Command) -> None:
        self.words, self._begun = words, time.time()
        try:
            self.run.folder.mkdir(parents=True, exist_ok=True)
            with open(self.log, "ab") as log:
                log.write(f"== {shown(words)}\n".encode())
                log.flush()
                self.process = start(argv_of(words), log, env=self._environment)
        except UserError as error:
            self._fail(str(error))
        except OSError as error:
            self._fail(f"{error.filename or self.log}: {error.strerror}")

    def _fail(self, last: str) -> None:
        last = last.removeprefix("error: ")
        where = "" if "(all of it in " in last else f" (all of it in {self.log})"
        self.failure = f"{self.run.name}: {self._name()}: {last}{where}"

    def _name(self) -> str:
        return " ".join(self.words[: 2 if self.words[0] == PROGRAM else 1])

    def status(self) -> str:
        """What it works at: how far the training is, or the command and its last word."""
        if found := training(self.run.folder, self._begun):
            return found
        said = [line for line in tail(self.log)[-1:] if not line.startswith("== ")]
        return ": ".join([self._name(), *said])[:_WIDTH]


def check_programs(commands: Sequence[Command]) -> None:
    """Raises UserError for a program that is not there."""
    for name in dict.fromkeys(words[0] for words in commands):
        if name != PROGRAM and not program(name):
            raise UserError(f"{name}: no such program; commands begin with {PROGRAM}, for example")


def usual_jobs() -> int:
    """Runs at a time: one for each core; where there are GPUs one, on all of them."""
    import torch

    return 1 if torch.cuda.is_available() else cores()


def clock(seconds: float) -> str:
    """``3 min 20 s``"""
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


class RunProgress:
    """What a sweep says while it works, by a bar in a terminal, lines in a log: which runs are
    done, and every few seconds what the others work at.
    """

    def __init__(self, total: int, every: float) -> None:
        self.total, self.count, self.every = total, 0, every
        self._began = self._said = time.monotonic()
        self._bar = tqdm(total=total, unit="run", disable=not sys.stderr.isatty())

    def say(self, text: str) -> None:
        took = clock(time.monotonic() - self._began)
        tqdm.write(f"   [{took}] {text}", file=sys.stderr)
        sys.stderr.flush()

    def tell(self, runs: Iterable[tuple[str, str]]) -> None:
        """``runs``: names, and what they work at. Says nothing where it has just done so."""
        if time.monotonic() - self._said >= self.every:
            self._said = time.monotonic()
            for name, status in runs:
                self.say(f"{name}: {status}")

    def ended(self, name: str, failure: str) -> None:
        """One more has ended; a failure is told in the end."""
        self.count += 1
        self.say(f"{name}: {'FAILED' if failure else 'done'} ({self.count} of {self.total})")
        self._bar.update()

    def close(self) -> None:
        self._bar.close()


def side_by_side(runs: Sequence[Run], jobs: int, every: float) -> list[str]:
    """Runs all of them, so many at a time, and returns a line for each that failed.

    All that was started has ended afterwards, also where this is interrupted. ``every``: seconds
    from one word on each run to the next.
    """
    waiting, failures = list(runs), []
    under_way: list[Work] = []
    progress, surroundings = RunProgress(len(runs), every), environment()
    if jobs > 1:  # they would only wait for each other's threads
        surroundings.setdefault("OMP_NUM_THREADS", "1")
    try:
        while waiting or under_way:
            while waiting and len(under_way) < jobs:
                under_way.append(Work(waiting.pop(0), surroundings))
            for work in [work for work in under_way if work.poll()]:
                under_way.remove(work)
                progress.ended(work.run.name, work.failure)
                failures += [work.failure] if work.failure else []
            progress.tell((work.run.name, work.status()) for work in under_way)
            time.sleep(_PAUSE)
    finally:
        end([work.process for work in under_way if work.process])
        progress.close()
    return failures
