"""Execution of a sweep: preparation, runs on this machine or a cluster, report.

A run executes its commands in order, with their output in ``FOLDER/sweep.log``. On this machine,
runs are parallel processes; on a cluster each is a job of submitit, with its files in
``FOLDER/job``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any, TextIO

import submitit
from submitit.core.utils import FailedJobError, UncompletedJobError
from submitit.slurm.slurm import SlurmExecutor

from ..system import progress
from ..system.errors import UserError
from ..system.files import write_text
from ..system.options import unknown
from ..system.process import cores, end, environment, module, run_child, start
from ..system.progress import announce, duration, say, tail_of
from .sweep import Command, Run, Sweep, shown

PROGRAM = "diet-mt"
LOG = "sweep.log"
MINUTES = 1440  # default time limit of a job, after which it is requeued and resumed
REQUEUES = 100
_WIDTH = 120  # characters of a status
_PAUSE_S, _PAUSE_OF_JOBS_S = 0.1, 1.0  # between polls of the runs
# Commands that all machines execute; only the first machine executes others.
_SHARED = ("train", "pretrain")
_OWN_NAMES = {"time": "timeout_min", "mem": "mem_gb"}  # Slurm's option -> submitit's

# Executes all runs and returns a message for each failure, or None if they continue detached.
Runner = Callable[[Sequence[Run]], list[str] | None]
# A run in progress: each step polls it and yields its process on this machine, if any; the result
# is a message about its failure, or empty.
Job = Generator[subprocess.Popen[bytes] | None, None, str]


def go(sweep: Sweep, runner: Runner) -> int:
    """Executes a sweep and returns the exit status. Raises :class:`UserError` if a run fails."""
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


def _one_by_one(commands: Sequence[Command], to: TextIO) -> int:
    """Executes commands with output to ``to``; returns the first nonzero status, or 0."""
    to.flush()
    for words in commands:
        say(shown(words))
        status = run_child(argv_of(words), out=to.buffer, err=sys.stderr.buffer)
        if status < 0:
            raise UserError(f"{shown(words)}: killed by signal {-status}")
        if status:
            return status
    return 0


def with_files(words: Command) -> list[str]:
    """The words of a command, with ``*`` expanded to file names as in a shell."""
    return [
        file for word in words for file in (sorted(glob(word)) if "*" in word else ()) or [word]
    ]


def argv_of(words: Command) -> list[str]:
    """The arguments to start a command; programs of this Python environment have priority."""
    name, *files = with_files(words)
    if name == PROGRAM:
        return module("diet_mt", files)
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return [shutil.which(name, path=places) or name, *files]


def execute(run: Run, env: Mapping[str, str], log_name: str = LOG) -> Job:
    """Executes the commands of a run on this machine, up to the first failure."""
    log = run.folder / log_name
    for words in run.commands:
        reason = ""
        try:
            run.folder.mkdir(parents=True, exist_ok=True)
            with open(log, "ab") as file:
                file.write(f"== {shown(words)}\n".encode())
                file.flush()
                process = start(argv_of(words), file, env=env)
            try:
                while process.poll() is None:
                    yield process
            finally:
                if process.returncode is None:  # interrupted
                    end([process])
            if process.returncode < 0:
                reason = f"killed by signal {-process.returncode}"
            elif process.returncode:
                line = _last_line(log)
                is_output = line and not line.startswith("== ")
                reason = line if is_output else f"ended with status {process.returncode}"
        except UserError as error:
            reason = str(error)
        except OSError as error:
            reason = f"{error.filename or log}: {error.strerror}"
        if reason:
            name = " ".join(words[: 2 if words[0] == PROGRAM else 1])
            return f"{run.name}: {name}: {reason.removeprefix('error: ')} (log: {log})"
    return ""


def _last_line(log: Path) -> str:
    return tail_of(log).strip().rpartition("\n")[2].strip()


def _carry_out(
    runs: Sequence[Run],
    begin: Callable[[Run], Job],
    status: Callable[[Run], str],
    at_once: int,
    pause: float,
) -> list[str]:
    """Executes runs, ``at_once`` in parallel; returns a message for each failure.

    Prints the end of each run, and changes of its status. Afterwards, even if interrupted, no
    process is left on this machine.
    """
    waiting, jobs, failures = list(runs), dict[Run, Job](), list[str]()
    processes: dict[Run, subprocess.Popen[bytes] | None] = {}
    statuses: dict[Run, str] = {}
    began = printed = time.monotonic()

    def tell(run: Run, text: str) -> None:
        say(f"[{duration(time.monotonic() - began)}] {run.name}: {text}")

    try:
        while waiting or jobs:
            while waiting and len(jobs) < at_once:
                run = waiting.pop(0)
                jobs[run] = begin(run)
            for run, job in list(jobs.items()):
                try:
                    processes[run] = next(job)
                except StopIteration as ended:
                    del jobs[run]
                    failures += [ended.value] if ended.value else []
                    count = len(runs) - len(waiting) - len(jobs)
                    left = (time.monotonic() - began) * (len(runs) / count - 1)
                    share = f"{count} of {len(runs)}, {count / len(runs):.0%}"
                    share += f", {duration(left)} left" if count < len(runs) else ""
                    tell(run, f"{'FAILED' if ended.value else 'done'} ({share})")
            if time.monotonic() - printed >= progress.EVERY_S:
                printed = time.monotonic()
                for run in jobs:
                    if (line := status(run)) != statuses.get(run):
                        statuses[run] = line
                        tell(run, line)
            time.sleep(pause)
    finally:
        end([process for run in jobs if (process := processes.get(run))])
    return failures


def usual_jobs() -> int:
    """Default number of parallel runs: one per core, or a single one if there are GPUs."""
    import torch

    return 1 if torch.cuda.is_available() else cores()


def side_by_side(runs: Sequence[Run], jobs: int) -> list[str]:
    """Executes runs on this machine, ``jobs`` in parallel; returns a message for each failure."""
    env = environment()
    if jobs > 1:  # parallel runs would compete for cores
        env.setdefault("OMP_NUM_THREADS", "1")

    def status(run: Run) -> str:
        return _last_line(run.folder / LOG).removeprefix("== ")[:_WIDTH]

    return _carry_out(runs, lambda run: execute(run, env), status, jobs, _PAUSE_S)


@dataclass(frozen=True)
class ClusterJob:
    """The callable of a submitit job; returns a message about a failure, or an empty string."""

    run: Run

    def __call__(self) -> str:
        rank = submitit.JobEnvironment().global_rank
        run, log = self.run, LOG
        if rank:
            commands = tuple(
                each for each in run.commands if each[0] == PROGRAM and each[1] in _SHARED
            )
            run, log = Run(run.name, run.folder, commands), f"sweep.{rank}.log"
        job = execute(run, environment(), log)
        try:
            while True:
                next(job)
                time.sleep(_PAUSE_OF_JOBS_S)
        except StopIteration as ended:
            return str(ended.value)
        finally:
            job.close()  # ends its process

    def checkpoint(self) -> submitit.helpers.DelayedSubmission:
        """The job that submitit requeues after a timeout or preemption; it resumes the run."""
        return submitit.helpers.DelayedSubmission(self)


def _submitted(run: Run, job: submitit.Job[str]) -> Job:
    """A submitted run: waits for its cluster job."""
    while not job.done():
        yield None
    try:
        return next(filter(None, job.results()), "")
    except (FailedJobError, UncompletedJobError) as error:
        last = str(error).strip().split("\n")[-1]
        return f"{run.name}: job {job.job_id}: {last} (log: {job.paths.stderr})"


def parameters(given: Mapping[str, str]) -> dict[str, Any]:
    """Options of Slurm or submitit for ``update_parameters``. Raises UserError for invalid ones."""
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
    runs: Sequence[Run], options: Mapping[str, Any], wait: bool, cluster: str = "slurm"
) -> list[str] | None:
    """Submits each run as a job of submitit's ``cluster``, unless it is already in the queue.

    Returns a message for each failed run, or None if not ``wait``.
    """
    os.environ.update(environment())  # for submitit to find this package
    begun = time.time()
    jobs = {run: _in_queue(run, cluster) or _submit(run, cluster, options) for run in runs}
    if not wait:
        return None

    def status(run: Run) -> str:
        log = run.folder / LOG
        has_begun = log.is_file() and log.stat().st_mtime > begun
        return _last_line(log)[:_WIDTH] if has_begun else str(jobs[run].state).lower()

    begin = {run: _submitted(run, job) for run, job in jobs.items()}
    return _carry_out(runs, begin.__getitem__, status, len(runs), _PAUSE_OF_JOBS_S)


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
    """The queued or running job of this run from an earlier call, if any."""
    file = run.folder / "job" / "id"
    if cluster != "slurm" or not file.is_file():
        return None
    job: submitit.Job[str] = submitit.SlurmJob(
        file.parent, file.read_text(encoding="utf-8").strip()
    )
    if job.done(force_check=True):
        return None
    if job.state == "UNKNOWN":  # not yet in the accounting, purged from it, or there is none
        ids = f"{job.job_id},{job.job_id}"  # squeue fails for a single unknown id
        queue = subprocess.run(["squeue", "--noheader", "--jobs", ids], stdout=subprocess.PIPE)
        return job if queue.returncode or queue.stdout else None
    return job
