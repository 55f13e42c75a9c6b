"""Rehearses the preparation of WMT18 on made-up text: time and memory of every stage.

Prints one JSON line for each stage, and as Markdown what the same would take of all 4.5 million
pairs. With ``--interrupt`` a second run is killed (SIGKILL) once in the middle of every stage and
continued, and must give the same data. Command: ``python -m tools.rehearsal --pairs N DIR``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from diet_mt.command_line import run
from diet_mt.errors import UserError
from diet_mt.files import sha256
from tools.forecast import APART, Stage, table
from tools.made_up import write_archives
from tools.process_tree import Sampler

ROOT = Path(__file__).resolve().parent.parent
SHORT = 4  # seconds: a stage that takes less is killed as it begins


class Recipe:
    """``diet-mt prepare wmt18`` on the archives of ``folder``, in ``folder/NAME``."""

    def __init__(
        self, folder: Path, name: str, subwords: str, workers: int, more: Sequence[str] = ()
    ) -> None:
        self.folder, self.out, self.workers = folder, folder / name, workers
        archives = folder / "archives"
        options: list[object] = [
            *("--out", self.out, "--downloads", folder / f"{name}.downloads"),
            *("--from", archives, "--manifest", archives / "manifest"),
            *("--subwords", subwords, "--workers", workers),
        ]
        command = [sys.executable, "-m", "diet_mt", "prepare", "wmt18", "de-en"]
        self.command = [*command, *map(str, options), *more]

    def start(self) -> subprocess.Popen[str]:
        sacrebleu = str(self.folder / f"{self.out.name}.sacrebleu")
        return subprocess.Popen(
            self.command,
            env={**os.environ, "SACREBLEU": sacrebleu, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # so that all of it can be killed at once
        )

    def lines(self, process: subprocess.Popen[str]) -> Iterator[str]:
        """What it says, which is also shown on stderr."""
        assert process.stderr is not None
        for line in process.stderr:
            print(f"{self.out.name}: {line}", end="", file=sys.stderr, flush=True)
            yield line

    def times(self) -> dict[str, tuple[float, int]]:
        """Of each stage, (seconds, lines)."""
        rows = (self.out / "stages.tsv").read_text(encoding="utf-8").split("\n")[:-1]
        return {name: (float(s), int(n)) for name, s, n in (row.split("\t") for row in rows)}


def begun(line: str) -> str:
    """The stage that a line of the recipe says is beginning, or nothing."""
    words = line.split()
    return words[1] if len(words) == 3 and words[0] == "==" and words[2] == "..." else ""


def measure(recipe: Recipe, pairs: int) -> list[Stage]:
    """Runs it without a pause.

    Raises:
        UserError: it fails.
    """
    with recipe.start() as process:
        sampler = Sampler(process.pid, APART)
        sampler.start()
        for line in recipe.lines(process):
            if begun(line):
                sampler.stage = begun(line)
        status = process.wait()
        sampler.end()
    if status:
        raise UserError(f"the recipe failed with exit status {status}; see above")
    stages = []
    for name, (seconds, lines) in recipe.times().items():
        usage = sampler.usage.get(name)
        cpu = (usage.total_cpu, usage.main_cpu, usage.peak_mib) if usage else (seconds, seconds, 0)
        stages.append(
            Stage(
                name=name,
                pairs=pairs,
                workers=recipe.workers,
                seconds=seconds,
                lines=lines,
                cpu_seconds=round(cpu[0], 1),
                main_cpu_seconds=round(cpu[1], 1),
                peak_mib=round(cpu[2]),
            )
        )
    return stages


def interrupt(recipe: Recipe, stages: list[Stage]) -> None:
    """Runs it, kills it in the middle of every stage, and continues to the end.

    Raises:
        UserError: it cannot be continued, or a stage that was killed looks complete.
    """
    for stage in stages:
        with recipe.start() as process:
            for line in recipe.lines(process):
                if begun(line) == stage.name:
                    time.sleep(stage.seconds / 3 if stage.seconds >= SHORT else 0)
                    os.killpg(process.pid, signal.SIGKILL)
        if process.returncode != -signal.SIGKILL or (recipe.out / stage.name).exists():
            raise UserError(f"{stage.name}: not killed in its middle; give more --pairs")
        print(f"{recipe.out.name}: killed in {stage.name}", file=sys.stderr, flush=True)
    with recipe.start() as process:
        for _ in recipe.lines(process):
            pass
    if process.returncode:
        raise UserError("the interrupted run could not be continued; see above")


def checksums(folder: Path) -> dict[str, str]:
    """SHA-256 of every file but the logs, which hold times and paths."""
    return {path.name: sha256(path) for path in folder.iterdir() if path.suffix != ".log"}


def make_archives(folder: Path, pairs: int) -> None:
    """Made-up archives, unless they are there already.

    Raises:
        UserError: those that are there have another number of pairs.
    """
    count = folder / "pairs"
    if not count.exists():
        print(f"making archives with {pairs:,} pairs", file=sys.stderr, flush=True)
        write_archives(folder, pairs)
        count.write_text(f"{pairs}\n", encoding="ascii")
    there = count.read_text(encoding="ascii").strip()
    if there != str(pairs):
        raise UserError(f"{folder}: has archives of {there} pairs, not {pairs}; remove it")


def rehearse(args: argparse.Namespace) -> None:
    if args.workers < 2:
        raise UserError("--workers must be at least 2, to tell what more of them would shorten")
    folder: Path = args.folder
    make_archives(folder / "archives", args.pairs)
    recipe = (args.subwords, args.workers, args.options)
    whole = Recipe(folder, "whole", *recipe)
    stages = measure(whole, args.pairs)
    for stage in stages:
        print(json.dumps({"subwords": args.subwords, **asdict(stage)}), flush=True)
    survived = ""
    if args.interrupt:
        broken = Recipe(folder, "interrupted", *recipe)
        interrupt(broken, stages)
        wrong = {
            name
            for name, digest in checksums(whole.out / "bin").items()
            if checksums(broken.out / "bin").get(name) != digest
        }
        if wrong:
            raise UserError(f"after interruptions these files differ: {', '.join(sorted(wrong))}")
        survived = f"\n\nKilled once in each of the {len(stages)} stages and continued: same data."
        shutil.rmtree(broken.out)
    print(table(stages, args.subwords) + survived)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools.rehearsal", description="rehearse the preparation")
    parser.add_argument("folder", type=Path, help="to work in; its archives are used again")
    parser.add_argument("--pairs", type=int, default=1_000_000, help="default 1000000")
    parser.add_argument("--subwords", choices=["bpe", "spm"], default="bpe", help="default bpe")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--workers", type=int, default=cores, help="default: one for each core")
    parser.add_argument("--interrupt", action="store_true", help="kill a second run in every stage")
    parser.add_argument("options", nargs="*", help="of diet-mt prepare wmt18, behind --")
    args = parser.parse_args(argv)
    return run(lambda: rehearse(args))


if __name__ == "__main__":
    sys.exit(main())
