"""Runs as jobs of a cluster, one each, through submitit."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import submitit
from submitit.core.utils import FailedJobError, UncompletedJobError
from submitit.slurm.slurm import SlurmExecutor

from ..command_line import unknown
from ..errors import UserError
from ..stages.child import environment
from .sweep import Run
from .work import LOG, PROGRAM, RunProgress, Work, end, training

MINUTES = 1440  # of a job, unless said otherwise; then it is queued again, and goes on
REQUEUES = 100
_PAUSE = 1.0  # seconds between looks at the jobs
# On several machines all of them train; the first does the rest.
_SHARED = ("train", "pretrain")
_OWN_NAMES = {"time": "timeout_min", "mem": "mem_gb"}


@dataclass(frozen=True)
class ClusterJob:
    """What submitit calls on the cluster; it returns why the run failed, or nothing."""

    run: Run

    def __call__(self) -> str:
        rank = submitit.JobEnvironment().global_rank
        run, log = self.run, LOG
        if rank:
            shared = (each for each in run.commands if each[0] == PROGRAM and each[1:2])
            commands = tuple(each for each in shared if each[1] in _SHARED)
            run, log = Run(run.name, run.folder, commands), f"sweep.{rank}.log"
        work = Work(run, environment(), log)
        try:
            while not work.poll():
                time.sleep(_PAUSE)
        finally:
            end([work.process] if work.process else [])
        return work.failure

    def checkpoint(self) -> submitit.helpers.DelayedSubmission:
        """Where its time is up or it is preempted: the same again, and it goes on."""
        return submitit.helpers.DelayedSubmission(self)


def parameters(given: Mapping[str, str]) -> dict[str, Any]:
    """Arguments for ``submitit.AutoExecutor.update_parameters``.

    ``given``: as Slurm calls them (``time`` in minutes, ``mem`` in GB), or as submitit does. Raises
    UserError where one is unknown, or should be a number.
    """
    types = submitit.AutoExecutor._typed_parameters()
    known = {*_OWN_NAMES, *types, *SlurmExecutor._valid_parameters()}
    found: dict[str, Any] = {"timeout_min": MINUTES}
    for name, text in given.items():
        if name not in known:
            raise UserError(f"--slurm: {unknown('option', name, sorted(known))}")
        kind = types.get(_OWN_NAMES.get(name, name))
        try:
            value = kind(text) if kind in (int, float) else int(text) if text.isdecimal() else text
        except ValueError:
            raise UserError(f"--slurm: {name}={text}: should be a number") from None
        found[_OWN_NAMES.get(name, name) if kind else f"slurm_{name}"] = value
    return found


def as_jobs(
    runs: Sequence[Run], cluster: str, options: Mapping[str, Any], every: float | None
) -> list[str] | None:
    """Submits each run as a job, but for those that are in the queue already, and waits for them.
    Returns a line for each run that failed; None without waiting.

    ``cluster``: ``slurm``, or ``local``: processes of this machine; ``options``: as ``parameters``
    returns them; ``every``: seconds from one word on each run to the next, None: does not wait.
    Raises UserError where there is no Slurm here, or it refuses the job.
    """
    os.environ.update(environment())  # for submitit to find this package
    jobs = [_in_queue(run, cluster) or _submit(run, cluster, options) for run in runs]
    return None if every is None else _wait(runs, jobs, every)


def _submit(run: Run, cluster: str, options: Mapping[str, Any]) -> submitit.Job[str]:
    """Submitit's files are in ``FOLDER/job``."""
    folder = run.folder / "job"
    try:
        executor = submitit.AutoExecutor(folder, cluster=cluster, slurm_max_num_timeout=REQUEUES)
        executor.update_parameters(**{"name": run.name.replace("/", "."), **options})
        job = executor.submit(ClusterJob(run))
    except (RuntimeError, ValueError, FailedJobError) as error:
        raise UserError(f"{run.name}: cannot be submitted: {str(error).strip()}") from None
    (folder / "id").write_text(f"{job.job_id}\n", encoding="utf-8")
    return job


def _in_queue(run: Run, cluster: str) -> submitit.Job[str] | None:
    """The job of this run that an earlier sweep submitted, if it waits or works."""
    file = run.folder / "job" / "id"
    if cluster != "slurm" or not file.is_file():
        return None
    job: submitit.Job[str] = submitit.SlurmJob(
        file.parent, file.read_text(encoding="utf-8").strip()
    )
    return None if job.done(force_check=True) else job


def _wait(runs: Sequence[Run], jobs: Sequence[submitit.Job[str]], every: float) -> list[str]:
    """Waits for the end of all jobs, and returns a line for each run that failed."""
    progress, failures = RunProgress(len(runs), every), []
    under_way = dict(zip(runs, jobs, strict=True))
    begun = time.time()
    try:
        while under_way:
            for run, job in [(run, job) for run, job in under_way.items() if job.done()]:
                del under_way[run]
                failure = _failure(run, job)
                progress.ended(run.name, failure)
                failures += [failure] if failure else []
            progress.tell(
                (run.name, training(run.folder, begun) or job.state.lower())
                for run, job in under_way.items()
            )
            time.sleep(_PAUSE)
    finally:
        progress.close()
    return failures


def _failure(run: Run, job: submitit.Job[str]) -> str:
    """Why a run failed, on one line; nothing where it did not."""
    try:
        return next(filter(None, job.results()), "")
    except (FailedJobError, UncompletedJobError) as error:
        lines = str(error).strip().split("\n")
        return f"{run.name}: job {job.job_id}: {lines[-1]} (all of it in {job.paths.stderr})"
