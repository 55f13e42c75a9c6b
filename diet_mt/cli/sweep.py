"""``diet-mt sweep``, and what it needs of the other commands: their names, words and dry runs."""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

from ..system.errors import UserError
from ..system.options import (
    Command,
    NotNegative,
    Pair,
    Positive,
    argument,
    by_name,
    option,
    pair,
    unknown,
)

if TYPE_CHECKING:
    from ..experiments.jobs import Runner
    from ..experiments.sweep import Command as Words
    from ..experiments.sweep import Value


def pairs(text: str) -> dict[str, str]:
    """``key=value,key=value``, each key once; a value may have commas, too."""
    values = [pair(part) for part in re.split(r",(?=[^,=]+=)", text)] if text else []
    try:
        return by_name(values, f"{text}:")
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def choice(text: str) -> dict[str, str]:
    """As :func:`pairs`, of at least one pair."""
    return pairs(text) or dict([pair(text)])


@dataclass(frozen=True, kw_only=True)
class Sweep(Command):
    """Runs an experiment of a file: prepares the data, does all runs, shows the table.

        diet-mt sweep demo                         config/demo.yaml: four tiny models, eight minutes
        diet-mt sweep multi30k --jobs 4            four runs side by side, one thread each
        diet-mt sweep table4 --dry-run             every command, and what it would start
        diet-mt sweep table4 --runs direction=en-de,system=diet_rel --runs system=shaw
        diet-mt sweep multi30k --set system=learned --set seed=[2,3] --set from=downloads/multi30k
        diet-mt sweep table4 --slurm partition=gpu,gpus_per_node=8,time=1440      a job for each run
        diet-mt sweep mine.yaml

    FILE is a path or the name of a file in config/, in YAML:

        extends: multi30k                            takes over that file, but for what stands here
        settings: {data: data/mine, from: null}      variables; null: no word; ???: needs a --set
        prepare: ["diet-mt prepare multi30k en-de --out {data} --from={from}"]
        runs:                                        lists are multiplied out: here four runs
          - {system: [sinusoidal, shaw], seed: [1, 2]}
        folder: "checkpoints/mine/{system}.{seed}"   of each run
        run: ["diet-mt train {data} {system}_tiny --recipe {recipe} --save-dir {folder}"]
        report: ["diet-mt leaderboard results/mine.jsonl"]

    and training and options, which diet-mt train --recipe reads. The commands of a run go one after
    the other, with their output in FOLDER/sweep.log; if one fails, the rest is left for the next
    time. Entries of one folder that begin with the same command are one run: a training, decoded in
    several ways. Run again, a sweep continues: every command does only what is not done yet. A run
    that fails does not stop the others; in the end there is a line for each, status 2, and no
    table.
    """

    file: str = argument("a sweep: demo, multi30k, table4 ..., or a path", metavar="FILE")
    dry_run: bool = option("print all commands and do nothing", False)
    set: Sequence[Pair] = option("value of a variable; [A,B]: several", (), repeat=True)
    runs: Sequence[Annotated[dict[str, str], choice, "NAME=VALUE,..."]] = option(
        "only runs with all these values; repeated: the runs of each (default all)", (), repeat=True
    )
    jobs: Positive | None = option("runs at a time (default: the cores; with GPUs 1)", None)
    status_every: NotNegative = option("seconds between two lines on each run", 20.0)
    slurm: Annotated[dict[str, str], pairs, "NAME=VALUE,..."] | None = option(
        "submit each run as a job, with these options of Slurm: partition, account, qos, nodes, "
        "gpus_per_node, mem (GB), time (minutes, default 1440) ...",
        None,
    )
    executor: str | None = option("local: try the jobs here", None, choices=("slurm", "local"))
    no_wait: bool = option("with --slurm: submit, and exit", False)

    def run(self) -> int:
        from ..experiments.jobs import check_programs, dry_run, go
        from ..experiments.recipes import read
        from ..experiments.sweep import sweep_of, value_in

        changes: dict[str, Value] = {}
        for name, text in self.set:
            if name in changes:
                raise UserError(f"--set {name}: given twice; several values are [A,B]")
            changes[name] = value_in(text, f"--set {name}")
        sweep = sweep_of(read(self.file), self.file, changes, list(self.runs))
        check_programs(list(sweep.commands))
        check_commands(list(sweep.commands))
        runner = self.runner()
        if self.dry_run:
            for line in dry_run(sweep, planned):
                print(line)
            return 0
        is_cluster = (self.slurm is not None or self.executor) and self.executor != "local"
        if is_cluster and shutil.which("sbatch") is None:  # before hours of preparation
            raise UserError("--slurm: no sbatch on this machine; log in where jobs are submitted")
        return go(sweep, runner)

    def runner(self) -> Runner:
        """What runs the sweep: this machine or Slurm."""
        if self.slurm is None and not self.executor:
            if self.no_wait:
                raise UserError("--no-wait is for jobs of a cluster; add --slurm")
            from ..experiments.jobs import side_by_side, usual_jobs

            jobs = self.jobs or usual_jobs()
            return partial(side_by_side, jobs=jobs, every=self.status_every)
        if self.jobs:
            raise UserError("--jobs is for this machine; Slurm decides how many jobs run at a time")
        from ..experiments.jobs import as_jobs, parameters

        return partial(
            as_jobs,
            cluster=self.executor or "slurm",
            options=parameters(self.slurm or {}),
            every=None if self.no_wait else self.status_every,
        )


def check_commands(commands: Sequence[Words]) -> None:
    """UserError for a command that ``diet-mt`` does not have, or whose words it refuses."""
    from ..experiments.sweep import shown
    from .main import COMMANDS, parser_of

    for words in commands:
        name, rest = subcommand(words)
        if not name:
            continue
        if name not in COMMANDS:
            raise UserError(unknown("command", name, COMMANDS))
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            try:
                parser_of(name).parse_args(rest)
            except SystemExit:
                message = errors.getvalue().strip().removeprefix("error: ")
                raise UserError(f"{shown(words)}: {message}") from None


def subcommand(words: Words) -> tuple[str, Words]:
    """The name of a subcommand of diet-mt and its words; no name for any other command."""
    from .main import GROUPS

    length = 3 if words[1:2] and words[1] in GROUPS else 2
    return (" ".join(words[1:length]) if words[0] == "diet-mt" else ""), words[length:]


def planned(words: Words) -> list[str]:
    """The dry run of a command, or why there is none yet; empty without one."""
    from ..experiments.jobs import with_files
    from .main import main, parser_of

    name, _ = subcommand(words)
    if not name or not parser_of(name).takes("--dry-run"):
        return []
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            status = main([*with_files(words)[1:], "--dry-run"])
        except SystemExit as stop:
            status = 0 if stop.code is None else 2
    if status:  # the commands before have not run
        return [f"cannot say yet: {errors.getvalue().strip().removeprefix('error: ')}"]
    return out.getvalue().strip().splitlines()
