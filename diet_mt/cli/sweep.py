"""Runs an experiment that is a file: prepares the data, does all runs, shows the table.

    diet-mt sweep demo                           config/demo.yaml: four tiny models, eight minutes
    diet-mt sweep multi30k --jobs 4              four runs side by side, one thread each
    diet-mt sweep table4 --dry-run               every command, and what it would start
    diet-mt sweep table4 --runs direction=en-de,system=diet_rel --runs direction=en-de,system=shaw
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
    run: ["diet-mt train {data} {system}_tiny --recipe {recipe} --seed {seed} --save-dir {folder}"]
    report: ["diet-mt leaderboard results/mine.jsonl"]

and training and options, which diet-mt train --recipe reads. The commands of a run go one after the
other, and what they say to FOLDER/sweep.log; where one fails, the rest is left for the next time.
Entries of one folder that begin with the same command are one run: a training, decoded in several
ways. Run again, a sweep continues: every command does only what is not done yet. A run that fails
does not stop the others; in the end there is a line for each, status 2, and no table.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import shutil
from functools import partial
from typing import TYPE_CHECKING

from ..command_line import Parser, by_name, not_negative, pair, positive, unknown
from ..errors import UserError

if TYPE_CHECKING:
    from ..sweeps.engine import Runner
    from ..sweeps.variables import Command, Value


def pairs(text: str) -> dict[str, str]:
    """``key=value,key=value``, each key once; a value may have commas, too."""
    found = [pair(each) for each in re.split(r",(?=[^,=]+=)", text)] if text else []
    try:
        return by_name(found, f"{text}:")
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def choice(text: str) -> dict[str, str]:
    """As :func:`pairs`, of at least one pair."""
    return pairs(text) or dict([pair(text)])


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("file", metavar="FILE", help="a sweep: demo, multi30k, table4 ..., or a path")
    add("--dry-run", action="store_true", help="print all commands and do nothing")
    add("--set", type=pair, action="append", default=[], metavar="NAME=VALUE",
        help="a variable's value, instead of the file's; [A,B]: several")  # fmt: skip
    add("--runs", type=choice, action="append", default=[], metavar="NAME=VALUE,...",
        help="only runs with all these values; again: those, too (default all)")  # fmt: skip
    add("--jobs", type=positive, metavar="N",
        help="runs at a time (default: one for each core; with GPUs 1)")  # fmt: skip
    add("--status-every", type=not_negative, default=20.0, metavar="SECONDS",
        help="from one word on each run to the next (default 20)")  # fmt: skip
    add("--slurm", type=pairs, metavar="NAME=VALUE,...",
        help="submit each run as a job, with these options of Slurm: partition, account, "
        "qos, nodes, gpus_per_node, mem (GB), time (minutes, default 1440) ...")  # fmt: skip
    add("--executor", choices=("slurm", "local"),
        help="of --slurm: local tries the jobs out on this machine (default slurm)")  # fmt: skip
    add("--no-wait", action="store_true", help="with --slurm: submit, and leave the jobs alone")


def check_commands(commands: list[Command]) -> None:
    """Raises UserError for a command that ``diet-mt`` does not have, or whose words it refuses."""
    from ..sweeps.variables import shown
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
                said = errors.getvalue().strip().removeprefix("error: ")
                raise UserError(f"{shown(words)}: {said}") from None


def subcommand(words: Command) -> tuple[str, Command]:
    """The name of a subcommand of diet-mt and its words; no name for any other command."""
    from .main import GROUPS

    length = 3 if words[1:2] and words[1] in GROUPS else 2
    return (" ".join(words[1:length]) if words[0] == "diet-mt" else ""), words[length:]


def asked(words: Command) -> list[str]:
    """What a command says it would start, or why it cannot say; nothing where it starts nothing."""
    from ..sweeps.work import with_files
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
    if status:  # what comes before has not been done
        return [f"cannot say yet: {errors.getvalue().strip().removeprefix('error: ')}"]
    return out.getvalue().strip().splitlines()


def runner_of(args: argparse.Namespace) -> Runner:
    """Raises UserError for options that do not go together, or that Slurm does not know."""
    if args.slurm is None and not args.executor:
        if args.no_wait:
            raise UserError("--no-wait is for jobs of a cluster; add --slurm")
        from ..sweeps.work import side_by_side, usual_jobs

        return partial(side_by_side, jobs=args.jobs or usual_jobs(), every=args.status_every)
    if args.jobs:
        raise UserError("--jobs is for this machine; Slurm decides how many jobs run at a time")
    from ..sweeps.cluster import as_jobs, parameters

    return partial(
        as_jobs,
        cluster=args.executor or "slurm",
        options=parameters(args.slurm or {}),
        every=None if args.no_wait else args.status_every,
    )


def need_slurm() -> None:
    """Raises UserError where no job can be submitted, before hours of preparation."""
    if shutil.which("sbatch") is None:
        raise UserError("--slurm: no sbatch on this machine; log in where jobs are submitted")


def run(args: argparse.Namespace) -> int:
    from ..recipes import read
    from ..sweeps.engine import dry_run, go
    from ..sweeps.sweep import sweep_of
    from ..sweeps.variables import value_in
    from ..sweeps.work import check_programs

    changes: dict[str, Value] = {}
    for name, text in args.set:
        if name in changes:
            raise UserError(f"--set {name}: given twice; several values are [A,B]")
        changes[name] = value_in(text, f"--set {name}")
    sweep = sweep_of(read(args.file), args.file, changes, args.runs)
    check_programs(list(sweep.commands))
    check_commands(list(sweep.commands))
    runner = runner_of(args)
    if not args.dry_run:
        if (args.slurm is not None or args.executor) and args.executor != "local":
            need_slurm()
        return go(sweep, runner)
    for line in dry_run(sweep, asked):
        print(line)
    return 0
