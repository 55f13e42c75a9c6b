"""Execution of a sweep: preparation, runs on this machine or a cluster, report.

A run is its commands one after the other, with their output in ``FOLDER/sweep.log``. On this
machine some run side by side; on a cluster each is a job of submitit, with its files in
``FOLDER/job``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any, Protocol, TextIO

import submitit
from submitit.core.utils import FailedJobError, UncompletedJobError
from submitit.slurm.slurm import SlurmExecutor

from ..system.errors import UserError
from ..system.files import write_text
from ..system.options import unknown
from ..system.process import cores, end, environment, module, run_child, start
from ..system.progress import announce, duration, say, tail_of, training_status
from .sweep import Command, Run, Sweep, shown

PROGRAM = "diet-mt"
LOG = "sweep.log"
MINUTES = 1440  # default time limit of a job, after which it is requeued and resumed
REQUEUES = 100
_WIDTH = 100  # characters of a status
_PAUSE_S, _PAUSE_OF_JOBS_S = 0.1, 1.0  # between polls of the runs
# With several machines, all of them train; the first one executes the other commands.
_SHARED = ("train", "pretrain")
_OWN_NAMES = {"time": "timeout_min", "mem": "mem_gb"}  # Slurm's word -> submitit's

# Carries out all runs and returns a line for each failure, or None if they run detached.
Runner = Callable[[Sequence[Run]], list[str] | None]


def go(sweep: Sweep, runner: Runner) -> int:
    """Runs all unfinished parts of a sweep; returns the exit status."""
    began = time.monotonic()
    announce(f"== 1/3 prepare: {len(sweep.prepare)} commands")
    if status := _one_by_one(sweep.prepare, sys.stderr):
        return status
    announce(f"== 2/3 runs: {len(sweep.runs)}")
    failures = runner(sweep.runs)
    if failures is None:
        say("the runs are submitted; run the same command again for their status")
        return 0
    if failures:
        for failure in failures[:-1]:
            announce(f"error: {failure}")
        raise UserError(failures[-1])
    announce(f"== 3/3 report, after {duration(time.monotonic() - began)}")
    return _one_by_one(sweep.report, sys.stdout)


def dry_run(sweep: Sweep, ask: Callable[[Command], list[str]]) -> Iterator[str]:
    """The commands of a sweep, each followed by the lines of ``ask`` as comments."""
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
    """Runs commands with output to ``to``; returns the first nonzero status, or 0."""
    to.flush()
    for words in commands:
        say(shown(words))
        status = run_child(argv_of(words), out=to.buffer, err=sys.stderr.buffer)
        if status < 0:
            raise UserError(f"{shown(words)}: killed by signal {-status}")
        if status:
            return status
    return 0


def program(word: str) -> str | None:
    """The path of a program, in this environment first, active or not."""
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return shutil.which(word, path=places)


def check_programs(commands: Sequence[Command]) -> None:
    """Raises UserError for a program that does not exist."""
    for name in dict.fromkeys(words[0] for words in commands):
        if name != PROGRAM and not program(name):
            raise UserError(f"{name}: no such program; most commands begin with {PROGRAM}")


def with_files(words: Command) -> list[str]:
    """A command with the names of files for each ``*``, as in a shell."""
    return [
        file for word in words for file in (sorted(glob(word)) if "*" in word else ()) or [word]
    ]


def argv_of(words: Command) -> list[str]:
    """The arguments of a command for the operating system."""
    name, *files = with_files(words)
    return module("diet_mt", files) if name == PROGRAM else [program(name) or name, *files]


class _Job(Protocol):
    """A started run.

    ``failure``: why it failed, in one line; ``process``: the one under way on this machine.
    """

    failure: str
    process: subprocess.Popen[bytes] | None

    def poll(self) -> bool:
        """Whether it has ended."""

    def status(self) -> str:
        """The current status in words."""


class Work:
    """A run in processes of this machine."""

    def __init__(self, run: Run, env: Mapping[str, str], log: str = LOG) -> None:
        self.run, self.log, self.failure = run, run.folder / log, ""
        self._env, self._left = env, list(run.commands)
        self._words: Command = ()  # under way
        self.process: subprocess.Popen[bytes] | None = None
        self._begun = time.time()

    def poll(self) -> bool:
        """Whether the run has ended; starts the next command when one ends."""
        status = self.process.poll() if self.process else 0
        if status is None:
            return False
        if status:
            last = self._last_line()
            if status < 0:
                last = f"killed by signal {-status}"
            self._fail(last or f"ended with status {status}")
        elif self._left:
            self._begin(self._left.pop(0))
            return bool(self.failure)
        return True

    def status(self) -> str:
        if status := training(self.run.folder, self._begun):
            return status
        return ": ".join(filter(None, [self._name(), self._last_line()]))[:_WIDTH]

    def _begin(self, words: Command) -> None:
        self._words, self._begun = words, time.time()
        try:
            self.run.folder.mkdir(parents=True, exist_ok=True)
            with open(self.log, "ab") as log:
                log.write(f"== {shown(words)}\n".encode())
                log.flush()
                self.process = start(argv_of(words), log, env=self._env)
        except UserError as error:
            self._fail(str(error))
        except OSError as error:
            self._fail(f"{error.filename or self.log}: {error.strerror}")

    def _last_line(self) -> str:
        """The last line of the command's output."""
        lines = [line.strip() for line in tail_of(self.log).split("\n") if line.strip()]
        return "" if not lines or lines[-1].startswith("== ") else lines[-1]

    def _fail(self, reason: str) -> None:
        reason = reason.removeprefix("error: ")
        where = "" if "(all of it in " in reason else f" (all of it in {self.log})"
        self.failure = f"{self.run.name}: {self._name()}: {reason}{where}"

    def _name(self) -> str:
        return " ".join(self._words[: 2 if self._words[0] == PROGRAM else 1])


def training(folder: Path, since: float) -> str:
    """Progress of a training by its log; empty if that is older than ``since`` (Unix time)."""
    log = folder / "train.log"
    if log.is_file() and log.stat().st_mtime >= since:
        return training_status(tail_of(log), tail_of(folder / "command"))
    return ""


def _carry_out(
    runs: Sequence[Run], begin: Callable[[Run], _Job], at_once: int, every: float, pause: float
) -> list[str]:
    """Carries out runs, ``at_once`` in parallel; returns a line for each failure.

    Prints each run that has ended, and ``every`` so many seconds the status of those that changed.
    All that was started on this machine has ended afterwards, also after an interruption.
    """
    waiting, under_way, failures = list(runs), dict[Run, _Job](), list[str]()
    statuses: dict[Run, str] = {}
    began = printed = time.monotonic()

    def tell(run: Run, text: str) -> None:
        say(f"[{duration(time.monotonic() - began)}] {run.name}: {text}")

    try:
        while waiting or under_way:
            while waiting and len(under_way) < at_once:
                run = waiting.pop(0)
                under_way[run] = begin(run)
            for run in [run for run, job in under_way.items() if job.poll()]:
                failure = under_way.pop(run).failure
                failures += [failure] if failure else []
                ended = len(runs) - len(waiting) - len(under_way)
                left = (time.monotonic() - began) * (len(runs) / ended - 1)
                share = f"{ended} of {len(runs)}, {ended / len(runs):.0%}"
                share += f", {duration(left)} left" if ended < len(runs) else ""
                tell(run, f"{'FAILED' if failure else 'done'} ({share})")
            if time.monotonic() - printed >= every:
                printed = time.monotonic()
                for run, job in under_way.items():
                    if (status := job.status()) != statuses.get(run):
                        statuses[run] = status
                        tell(run, status)
            time.sleep(pause)
    finally:
        end([job.process for job in under_way.values() if job.process])
    return failures


def usual_jobs() -> int:
    """Default number of parallel runs: one per core, or one on all GPUs."""
    import torch

    return 1 if torch.cuda.is_available() else cores()


def side_by_side(runs: Sequence[Run], jobs: int, every: float) -> list[str]:
    """Carries out the runs on this machine, ``jobs`` in parallel; a line for each failure.

    ``every``: seconds from one status of each run to the next.
    """
    env = environment()
    if jobs > 1:  # parallel runs would compete for cores
        env.setdefault("OMP_NUM_THREADS", "1")
    return _carry_out(runs, lambda run: Work(run, env), jobs, every, _PAUSE_S)


@dataclass(frozen=True)
class ClusterJob:
    """The callable of a submitit job; it returns the reason of a failure, or nothing."""

    run: Run

    def __call__(self) -> str:
        rank = submitit.JobEnvironment().global_rank
        run, log = self.run, LOG
        if rank:
            commands = tuple(
                each for each in run.commands if each[0] == PROGRAM and each[1] in _SHARED
            )
            run, log = Run(run.name, run.folder, commands), f"sweep.{rank}.log"
        work = Work(run, environment(), log)
        try:
            while not work.poll():
                time.sleep(_PAUSE_OF_JOBS_S)
        finally:
            end([work.process] if work.process else [])
        return work.failure

    def checkpoint(self) -> submitit.helpers.DelayedSubmission:
        """The job to requeue after a timeout or preemption, which resumes the run."""
        return submitit.helpers.DelayedSubmission(self)


class _Submitted:
    """A run as a cluster job."""

    failure = ""
    process: subprocess.Popen[bytes] | None = None  # the job is detached

    def __init__(self, run: Run, job: submitit.Job[str]) -> None:
        self._run, self._job, self._begun = run, job, time.time()

    def poll(self) -> bool:
        if not self._job.done():
            return False
        try:
            self.failure = next(filter(None, self._job.results()), "")
        except (FailedJobError, UncompletedJobError) as error:
            last = str(error).strip().split("\n")[-1]
            where = f"(all of it in {self._job.paths.stderr})"
            self.failure = f"{self._run.name}: job {self._job.job_id}: {last} {where}"
        return True

    def status(self) -> str:
        return training(self._run.folder, self._begun) or str(self._job.state).lower()


def parameters(given: Mapping[str, str]) -> dict[str, Any]:
    """Arguments for ``submitit.AutoExecutor.update_parameters``.

    ``given``: as Slurm calls them (``time`` in minutes, ``mem`` in GB), or as submitit does.
    """
    types = submitit.AutoExecutor._typed_parameters()
    known = {*_OWN_NAMES, *types, *SlurmExecutor._valid_parameters()}
    options: dict[str, Any] = {"timeout_min": MINUTES}
    for name, text in given.items():
        if name not in known:
            raise UserError(f"--slurm: {unknown('option', name, sorted(known))}")
        kind = types.get(_OWN_NAMES.get(name, name))
        try:
            value = kind(text) if kind in (int, float) else int(text) if text.isdecimal() else text
        except ValueError:
            raise UserError(f"--slurm: {name}={text}: should be a number") from None
        options[_OWN_NAMES.get(name, name) if kind else f"slurm_{name}"] = value
    return options


def as_jobs(
    runs: Sequence[Run], cluster: str, options: Mapping[str, Any], every: float | None
) -> list[str] | None:
    """Submits each run as a job, except those in the queue already, and waits for them. Returns a
    line for each run that failed; None without waiting.

    ``cluster``: ``slurm``, or ``local``: processes of this machine; ``options``: of ``parameters``;
    ``every``: seconds from one status of each run to the next, None: does not wait.
    """
    os.environ.update(environment())  # for submitit to find this package
    jobs = {run: _in_queue(run, cluster) or _submit(run, cluster, options) for run in runs}
    if every is None:
        return None
    return _carry_out(
        runs, lambda run: _Submitted(run, jobs[run]), len(runs), every, _PAUSE_OF_JOBS_S
    )


def _submit(run: Run, cluster: str, options: Mapping[str, Any]) -> submitit.Job[str]:
    folder = run.folder / "job"
    try:
        executor = submitit.AutoExecutor(folder, cluster=cluster, slurm_max_num_timeout=REQUEUES)
        executor.update_parameters(**{"name": run.name.replace("/", "."), **options})
        job = executor.submit(ClusterJob(run))
    except (RuntimeError, ValueError, FailedJobError) as error:
        raise UserError(f"{run.name}: cannot be submitted: {str(error).strip()}") from None
    write_text(folder / "id", f"{job.job_id}\n")
    return job


def _in_queue(run: Run, cluster: str) -> submitit.Job[str] | None:
    """The queued or running job of this run from an earlier sweep, if any."""
    file = run.folder / "job" / "id"
    if cluster != "slurm" or not file.is_file():
        return None
    job: submitit.Job[str] = submitit.SlurmJob(
        file.parent, file.read_text(encoding="utf-8").strip()
    )
    return None if job.done(force_check=True) else job
