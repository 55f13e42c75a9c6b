"""Results as a table: Markdown for the README, plain text for a terminal.

    python -m diet_mt.cli.table results/*.jsonl                       Markdown on stdout
    python -m diet_mt.cli.table results/*.jsonl --plain               plain text on stdout
    python -m diet_mt.cli.table results/*.jsonl --readme README.md    rewrites the README's section
    ... --readme README.md --check                                    fails if it would change

The section of the README lies between the lines ``<!-- results:begin -->`` and
``<!-- results:end -->``.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from ..data.corpus import run
from ..errors import UserError
from ..models._architectures import SIZES
from ..records import Result, read_results
from .readme import put_section
from .rescore import kept_hypotheses
from .score import USUAL
from .trained import system_of

BASELINE = "sinusoidal"


@dataclass(frozen=True)
class Row:
    """All seeds of one system on one test set, in the order of their seeds."""

    name: str
    system: str
    results: tuple[Result, ...]

    @property
    def bleu(self) -> float:
        return fmean(result.bleu for result in self.results)

    @property
    def chrf(self) -> float:
        return fmean(result.chrf for result in self.results)


@dataclass(frozen=True)
class Group:
    """Rows that may be compared: one test set, one size of model, one way of decoding."""

    title: str
    rows: tuple[Row, ...]  # best first

    def gain(self, row: Row) -> float | None:
        """Mean BLEU above the baseline's mean; None where there is no baseline."""
        for other in self.rows:
            if other.system == BASELINE:
                return row.bleu - other.bleu
        return None

    def results(self) -> list[Result]:
        return [result for row in self.rows for result in row.results]


def _size(arch: str) -> str:
    size = arch.rpartition("_")[2]
    return size if size in SIZES else ""


def _name(result: Result) -> str:
    """The architecture, unless the result was given a name of its own."""
    own = result.system != system_of(result.arch)
    return f"{result.system} ({result.arch})" if own else result.arch


def group(results: Iterable[Result]) -> list[Group]:
    """Sorts results into comparable groups. Raises UserError if two claim the same place."""
    places: dict[tuple[object, ...], dict[str, dict[int, Result]]] = {}
    for result in results:
        key = (
            result.test_set,
            result.direction,
            result.sentences,
            _size(result.arch),
            result.beam,
            result.lenpen,
            result.checkpoint,
        )
        seeds = places.setdefault(key, {}).setdefault(_name(result), {})
        if result.seed in seeds:
            raise UserError(f"two results of {_name(result)}, seed {result.seed}, {key[0]}")
        seeds[result.seed] = result
    groups = []
    for (test_set, direction, sentences, _, beam, lenpen, checkpoint), names in places.items():
        rows = []
        for name, seeds in names.items():
            ordered = tuple(seeds[seed] for seed in sorted(seeds))
            rows.append(Row(name, ordered[0].system, ordered))
        rows.sort(key=lambda row: -row.bleu)
        title = (
            f"{test_set}, {direction}, {sentences} sentences, beam {beam}, length penalty {lenpen}"
        )
        if checkpoint != USUAL["checkpoint"]:
            title += f", {checkpoint}"
        groups.append(Group(title, tuple(rows)))
    return groups


def _cells(where: Group, row: Row) -> list[str]:
    gain = where.gain(row)
    parameters = {result.parameters for result in row.results}
    return [
        row.name,
        f"{row.bleu:.2f}",
        "" if gain is None else "0" if row.system == BASELINE else f"{gain:+.2f}",
        f"{row.chrf:.2f}",
        ", ".join(f"{result.seed}: {result.bleu:.2f}" for result in row.results),
        ", ".join(f"{count:,}" for count in sorted(parameters)),
    ]


HEADER = ["architecture", "BLEU", f"to {BASELINE}", "chrF", "BLEU of each seed", "parameters"]


def plain(groups: Iterable[Group]) -> str:
    """Tables for a terminal, each with its signatures."""
    out = []
    for one in groups:
        lines = [HEADER] + [_cells(one, row) for row in one.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
        out.append(one.title)
        for line in lines:
            numbers = [
                cell.rjust(width) for cell, width in zip(line[1:4], widths[1:4], strict=True)
            ]
            parts = [line[0].ljust(widths[0]), *numbers, line[4].ljust(widths[4])]
            out.append("  " + "  ".join([*parts, line[5].rjust(widths[5])]))
        out += [f"  {line}" for line in _signatures(one)] + [""]
    return "\n".join(out)


def markdown(groups: Iterable[Group]) -> str:
    """Tables with signatures and every command, ending in a newline."""
    out = []
    for one in groups:
        out += [f"**{one.title}**", "", _line(HEADER), _line(["---"] + ["---:"] * 3 + ["---"] * 2)]
        out += [_line(_cells(one, row)) for row in one.rows]
        out += ["", "BLEU and the difference are means over the seeds.", ""]
        out += [f"- {line}" for line in _signatures(one)]
        out += ["", "<details><summary>The commands</summary>", "", "```", *_commands(one), "```"]
        out += ["", "</details>", ""]
    return "\n".join(out)


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _signatures(one: Group) -> list[str]:
    results = one.results()
    versions = {f"{result.fairseq}, torch {result.torch}" for result in results}
    bleu = {result.bleu_signature for result in results}
    chrf = {result.chrf_signature for result in results}
    return [
        *(f"BLEU {signature}" for signature in sorted(bleu)),
        *(f"chrF {signature}" for signature in sorted(chrf)),
        *sorted(versions),
    ]


def _commands(one: Group) -> list[str]:
    """Every different command of a group once, with SEED and CHECKPOINTS for what varies."""
    train: dict[str, None] = {}
    generate: dict[str, None] = {}
    for result in one.results():
        train[_general(result.train_command)] = None
        generate[_general(result.generate_command)] = None
    return [command for command in [*train, *generate] if command]


def _general(command: str) -> str:
    words = shlex.split(command)
    for place in range(1, len(words)):
        option, value = words[place - 1], words[place]
        if option == "--seed":
            words[place] = "SEED"
        elif option == "--save-dir":
            words[place] = "CHECKPOINTS"
        elif option == "--path":
            words[place] = f"CHECKPOINTS/{Path(value).name}"
    return shlex.join(words)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="diet_mt.cli.table", description="results as a table")
    parser.add_argument("results", type=Path, nargs="+", help="files written by evaluate.sh")
    parser.add_argument("--plain", action="store_true", help="plain text, not Markdown")
    parser.add_argument("--readme", type=Path, help="file whose section is rewritten")
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; fail if the README's section or a hypothesis file is not as recorded",
    )
    return parser


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)

    def body() -> None:
        files = {path: read_results(path) for path in args.results}
        groups = group(row for rows in files.values() for row in rows)
        if args.check:
            for path, rows in files.items():
                for row in rows:
                    kept_hypotheses(path.parent, row)
        text = (plain if args.plain else markdown)(groups)
        put_section(args.readme, "results", text, args.check)

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
