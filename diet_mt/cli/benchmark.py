"""Times fairseq's own Transformer and ours side by side: training, forward pass, decoding.

    python -m diet_mt.cli.benchmark --size tiny --data data/multi30k.en-de/bin > bench.jsonl
    python -m diet_mt.cli.benchmark --table bench.jsonl                       Markdown on stdout
    python -m diet_mt.cli.benchmark --table bench.jsonl --readme README.md    in the README

One process, random weights, systems taking turns; see ``timing`` and ``workload``. Not timed:
reading data, moving it to the device, building models. JSON lines on stdout, one for each system
and measure; progress on stderr.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import shlex
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from ..data.corpus import run
from ..models._architectures import SIZES
from .machine import machine, need_device, positive, read_records, take_turns
from .readme import put_section
from .timing import numbers, ratio, spread
from .trained import portable
from .workload import STOCK, SYSTEMS, Case, Settings, systems

# What the table reads of a record.
KEYS = ("size", "system", "measure", "median", "command")
# Measure -> its unit, and what ours should be beside stock fairseq.
MEASURES = {
    "train": ("ms", "at most 1.00"),
    "forward": ("ms", "at most 1.00"),
    "decode": ("sentences/s", "at least 1.00"),
}


def measure(
    names: list[str], settings: Settings, args: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """One record for each measure and system."""
    cases = dict(systems(names, settings, args.checkpoint))
    for kind in args.measures:
        kept = {name: case[kind] for name, case in cases.items()}
        gc.collect()
        label = f"{settings.size} {settings.device} {kind}"
        seconds = take_turns(kept, label, settings.device, args.rounds, args.warmup)
        for name in names:
            record = _summary(kind, seconds[name], seconds.get(STOCK), kept[name])
            yield {"size": settings.size, "system": name, "measure": kind, **record}


def _summary(kind: str, ours: list[float], stock: list[float] | None, case: Case) -> dict[str, Any]:
    """Numbers of one system: in the unit of ``kind``, and the ratio to stock round by round."""
    decoding = kind == "decode"
    if decoding:
        values = [case.sentences / value for value in ours]
    else:
        values = [1000 * value / len(case.data) for value in ours]
    record: dict[str, Any] = {"unit": MEASURES[kind][0], **numbers("", spread(values))}
    if stock:
        # Of times for times, of throughputs for throughputs.
        record |= numbers("ratio_", ratio(stock, ours) if decoding else ratio(ours, stock))
    turn = {"batches": len(case.data), "sentences": case.sentences}
    return {**record, **turn, "rounds": len(ours), "seconds": [round(value, 6) for value in ours]}


def table(records: list[dict[str, Any]]) -> str:
    """Markdown: one table for each device, precision and size."""
    groups: dict[tuple[str, ...], dict[str, dict[str, dict[str, Any]]]] = {}
    for record in records:
        where = (
            f"{record['size']}, {record['machine']}, {record['precision']}",
            f"threads: {record['threads']}; torch {record['torch']}; {record['fairseq']}; "
            f"revision {record['revision'] or 'unknown'}; {record['date']}; "
            f"rounds: {record['rounds']}",
            record["command"],
        )
        row = groups.setdefault(where, {}).setdefault(record["system"], {})
        row[record["measure"]] = record
    out = []
    for (title, circumstances, command), rows in groups.items():
        kinds = [kind for kind in MEASURES if any(kind in row for row in rows.values())]
        out += [f"**{title}**", ""]
        heads = [f"{kind}, {MEASURES[kind][0]} | to {STOCK}" for kind in kinds]
        out += [_line(["system", *heads]), _line(["---"] + ["---: | ---:"] * len(kinds))]
        for name, row in rows.items():
            out.append(_line([name, *(_cells(row.get(kind)) for kind in kinds)]))
        wanted = ", ".join(f"{kind} {MEASURES[kind][1]}" for kind in kinds)
        out += ["", f"Median (quartiles). To {STOCK}: median of the rounds' ratios; {wanted}."]
        out += ["", f"{circumstances}; `{command}`", ""]
    return "\n".join(out)


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cells(record: dict[str, Any] | None) -> str:
    """Two cells: the value and the ratio, each with its quartiles."""
    if record is None:
        return " | "
    digits = 1 if record["median"] >= 10 else 3

    def show(prefix: str, places: int) -> str:
        if f"{prefix}median" not in record:
            return ""
        middle, low, high = (record[f"{prefix}{key}"] for key in ("median", "low", "high"))
        return f"{middle:.{places}f} ({low:.{places}f}-{high:.{places}f})"

    return f"{show('', digits)} | {show('ratio_', 2)}"


def _checkpoint(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not equals or name not in SYSTEMS:
        raise argparse.ArgumentTypeError(f"{text}: write SYSTEM=FILE, SYSTEM of {SYSTEMS}")
    return name, Path(path)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="diet_mt.cli.benchmark",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--table", type=Path, nargs="+", help="time nothing; these files as Markdown on stdout")
    add("--readme", type=Path, help="with --table: file whose section is rewritten")
    add("--check", action="store_true", help="with --readme: only fail if it would change")
    add("--size", nargs="+", default=["tiny"], choices=sorted(SIZES), help="default tiny")
    add("--systems", nargs="+", default=list(SYSTEMS), choices=SYSTEMS, help="default all")
    add("--measures", nargs="+", default=list(MEASURES), choices=MEASURES, help="default all")
    add("--device", default="auto", choices=("auto", "cpu", "cuda"), help="auto: CPU, GPU if any")
    add("--fp16", action="store_true", help="on the GPU, half precision as well")
    add("--threads", type=positive, help="of the CPU (default: torch's own choice)")
    add("--rounds", type=positive, default=9, help="timed turns of each system (default 9)")
    add("--warmup", type=positive, default=2, help="untimed turns before (default 2)")
    add("--data", type=Path, help="folder made by fairseq-preprocess (default: made-up sentences)")
    add("--vocabulary", type=positive, default=6000, help="of made-up sentences (default 6000)")
    add("--train-tokens", type=positive, default=4096, help="in a batch (default 4096)")
    add("--decode-tokens", type=positive, default=1024, help="in a source batch (default 1024)")
    add("--batches", type=positive, default=2, help="in one turn of a system (default 2)")
    add(
        "--decode-length",
        type=int,
        default=20,
        help="tokens that every hypothesis is made to have (default 20; 0: the model decides)",
    )
    add("--beam", type=positive, default=10, help="default 10")
    add("--lenpen", type=float, default=0.6, help="default 0.6")
    add("--dropout", type=float, default=0.3, help="of all systems (default 0.3)")
    add("--options", default="", help="further fairseq-train options for all systems, in one word")
    add("--checkpoint", type=_checkpoint, action="append", default=[], help="SYSTEM=FILE: weights")
    return parser


def _settings(args: argparse.Namespace) -> list[Settings]:
    """One for each device, precision and size."""
    devices = ["cpu", "cuda"] if args.device == "auto" else [args.device]
    need_device(args.device)
    if not torch.cuda.is_available():
        devices = ["cpu"]
    places = [(device, False) for device in devices]
    places += [("cuda", True)] if args.fp16 and "cuda" in devices else []
    common = {
        name: getattr(args, name)
        for name in Settings.__dataclass_fields__
        if name not in ("size", "device", "half", "options")
    }
    words = tuple(shlex.split(args.options))
    return [
        Settings(size=size, device=device, half=half, options=words, **common)
        for device, half in places
        for size in args.size
    ]


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    args = _parser().parse_args(words)
    args.checkpoint = dict(args.checkpoint)
    for name in ("fairseq", "hydra"):
        logging.getLogger(name).setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module=r"(fairseq|torch)\.")

    def body() -> None:
        if args.table:
            text = table([record for path in args.table for record in read_records(path, KEYS)])
            if args.readme is None:
                print(text, end="")
            else:
                put_section(args.readme, "benchmark", text, args.check)
            return
        if args.threads:
            torch.set_num_threads(args.threads)
        command = portable(shlex.join(["python", "-m", "diet_mt.cli.benchmark", *words]))
        for settings in _settings(args):
            for record in measure(args.systems, settings, args):
                line = {**record, **machine(settings.device, settings.half, command)}
                print(json.dumps(line), flush=True)

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
