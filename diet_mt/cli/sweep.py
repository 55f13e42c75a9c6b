"""The command ``sweep``, and checks and dry runs of the commands in its file."""

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
from ..system.options import Command, Pair, Positive, argument, option, pair, unknown

if TYPE_CHECKING:
    from ..experiments.jobs import Runner
    from ..experiments.sweep import Command as Words


def once(pairs: Sequence[tuple[str, str]], where: str) -> dict[str, str]:
    """Name and value pairs as a mapping; raises UserError for a repeated name."""
    values: dict[str, str] = {}
    for name, value in pairs:
        if name in values:
            raise UserError(f"{where}: {name} is given twice; write several values as [A,B]")
        values[name] = value
    return values


def choice(text: str) -> dict[str, str]:
    """Name -> value of ``name=value,name=value``; values may contain commas."""
    try:
        return once([pair(part) for part in re.split(r",(?=[^,=]+=)", text)], text)
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


@dataclass(frozen=True, kw_only=True)
class Sweep(Command):
    """Runs an experiment file: prepares the data, executes all runs, prints the report.

        diet-mt sweep demo                         config/demo.yaml: four models, 8 to 16 minutes
        diet-mt sweep multi30k --jobs 4            four runs in parallel, one thread each
        diet-mt sweep table4 --dry-run             lists every command, with its dry run
        diet-mt sweep table4 --runs direction=en-de,system=diet_rel --runs system=shaw
        diet-mt sweep multi30k --set system=learned --set seed=[2,3] --set from=downloads/multi30k
        diet-mt sweep table4 --slurm partition=gpu,gpus_per_node=8,time=1440      a job for each run
        diet-mt sweep mine.yaml

    FILE is a path or the name of a file in config/, in YAML:

        extends: multi30k                            a file whose entries are inherited
        settings: {data: data/mine, from: null}      variables; null: no value; ???: set by --set
        prepare: ["diet-mt prepare multi30k en-de --out {data} --from={from}"]
        runs:                                        all combinations: here four runs
          - {system: [sinusoidal, shaw], seed: [1, 2]}
        folder: "checkpoints/mine/{system}.{seed}"   folder of each run
        run: ["diet-mt train {data} {system}_tiny --recipe {recipe} --save-dir {folder}"]
        report: ["diet-mt leaderboard results/mine.jsonl"]

    and the keys training and options, which diet-mt train --recipe reads. The commands of a run are
    executed in order until one fails; FOLDER/sweep.log has their output. Entries with the same
    folder and first command form one run, for example a training that is decoded in several ways.
    Running a sweep again resumes it: every command skips completed work. A failed run does not stop
    the others; at the end, the sweep prints a line for each failure and exits with status 2,
    without a report.
    """

    file: str = argument("experiment: demo, multi30k, table4 ..., or a path", metavar="FILE")
    dry_run: bool = option("only print all commands", False)
    set: Sequence[Pair] = option("value of a variable; [A,B]: several values", (), repeat=True)
    runs: Sequence[Annotated[dict[str, str], choice, "NAME=VALUE,..."]] = option(
        "only runs with all of these values; may be repeated (default all)", (), repeat=True
    )
    jobs: Positive | None = option("parallel runs (default: one per core; with GPUs 1)", None)
    slurm: Annotated[dict[str, str], choice, "NAME=VALUE,..."] | None = option(
        "submit each run as a Slurm job with these parameters: partition, account, qos, nodes, "
        "gpus_per_node, mem (GB), time (minutes, default 1440) ...",
        None,
    )
    no_wait: bool = option("with --slurm: exit after submitting", False)

    def run(self) -> int:
        from ..experiments.jobs import as_jobs, go, parameters, side_by_side, usual_jobs
        from ..experiments.recipes import read
        from ..experiments.sweep import shown, sweep_of, value_in

        changes = {
            name: value_in(text, f"--set {name}") for name, text in once(self.set, "--set").items()
        }
        sweep = sweep_of(read(self.file), self.file, changes, list(self.runs))
        check_commands(list(sweep.commands))
        if self.slurm is None:
            runner: Runner = partial(side_by_side, jobs=self.jobs or usual_jobs())
        else:
            runner = partial(as_jobs, options=parameters(self.slurm), wait=not self.no_wait)
        if self.dry_run:
            runs = [(f"run {run.name}", run.commands) for run in sweep.runs]
            for title, commands in [("prepare", sweep.prepare), *runs, ("report", sweep.report)]:
                print(f"# {title}")
                for words in commands:
                    print("\n#   ".join([shown(words), *planned(words)]))
            return 0
        if self.slurm is not None and shutil.which("sbatch") is None:  # before the preparation
            raise UserError("--slurm: sbatch is missing; run the sweep on a login node")
        return go(sweep, runner)


def check_commands(commands: Sequence[Words]) -> None:
    """Raises UserError for an unknown command of ``diet-mt``, and for invalid arguments."""
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
    """Name and arguments of a ``diet-mt`` command; an empty name for other programs."""
    from .main import GROUPS

    length = 3 if words[1:2] and words[1] in GROUPS else 2
    return (" ".join(words[1:length]) if words[0] == "diet-mt" else ""), words[length:]


def planned(words: Words) -> list[str]:
    """Lines of a command's dry run, or the reason for its failure; none without a dry run."""
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
    if status:  # earlier commands of the sweep have not run yet
        return [f"not known yet: {errors.getvalue().strip().removeprefix('error: ')}"]
    return out.getvalue().strip().splitlines()
