"""Times fairseq's own Transformer, ours and CTranslate2: training, forward pass, decoding.

    diet-mt bench speed --size tiny --data data/multi30k.en-de/bin > bench.jsonl
    diet-mt bench speed --table bench.jsonl                       Markdown on stdout
    diet-mt bench speed --table bench.jsonl --readme README.md    in the README

Each system lives in a process of its own, stock fairseq in one without the plugin; one at a time
has its turn, and another one begins each round. Random weights, unless --checkpoint gives real
ones. Not timed: reading data, moving it to the device, building models, choosing CTranslate2's
layout. Translations are compared where the model decides how long they are (--decode-length 0):
those of ctranslate2 with stock's, those of SYSTEM:fairseq (our model, fairseq's search) with
SYSTEM's. JSON lines on stdout, one for each system and measure; progress on stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ..command_line import Parser, run
from ..errors import UserError
from ..evaluation.checkpoint import portable
from ..leaderboard.readme import put_section
from ..models._architectures import SIZES
from .benchmark_table import KEYS, MEASURES, table
from .machine import machine, need_device, positive, read_records
from .process.timing import interleaved, numbers, ratio, rounds_on_stderr, spread
from .systems import (
    STOCK,
    SYSTEMS,
    WEIGHTS_OF,
    benchmark_job,
    environment,
    label,
    measured,
    unavailable,
)
from .workers import Worker, workers

# Arguments that are fields of bench.workload.Job under the same names.
_COMMON = (
    *("threads", "vocabulary", "train_tokens", "decode_tokens", "batches", "decode_length"),
    *("beam", "lenpen"),
)


def measure(
    names: list[str], size: str, device: str, half: bool, args: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """One record for each measure and system."""
    common = {name: getattr(args, name) for name in _COMMON} | {"device": device, "half": half}
    # Absolute, for the error messages of the workers as much as for their working directory.
    common["data"] = os.path.abspath(args.data) if args.data else None
    jobs = {}
    for name in names:
        file = args.checkpoint.get(WEIGHTS_OF.get(name, name))
        given = {**common, "checkpoint": str(file) if file else None}
        further = shlex.split(args.options)
        jobs[name] = benchmark_job(name, size, given, args.dropout, further), environment(name)
    for kind in args.measures:
        chosen = [name for name in names if measured(name, kind)]
        for number, group in enumerate(_groups(chosen, kind, args.together)):
            # Processes of this measure alone: what another one left in memory would be in the way.
            with workers({name: jobs[name] for name in group}) as crew:
                facts = {name: worker.ask("prepare", kind) for name, worker in crew.items()}
                _check(facts)
                seconds = interleaved(
                    {name: partial(worker.turn, kind) for name, worker in crew.items()},
                    rounds=args.rounds,
                    warmup=args.warmup,
                    progress=rounds_on_stderr(f"{size} {device} {kind}", args.rounds),
                )
                equal = _compared(crew) if kind == "decode" and not args.decode_length else {}
            for name in group if number == 0 else group[1:]:
                record = _summary(kind, seconds[name], seconds.get(STOCK), facts[name])
                about = {"size": size, "system": name, "measure": kind}
                yield {**about, **record, **equal.get(name, {})}


def _groups(names: list[str], kind: str, together: int) -> list[list[str]]:
    """The systems that take turns: all, or in training ``together`` of them and always stock."""
    others = [name for name in names if name != STOCK]
    if kind == "decode" or STOCK not in names or not 0 < together < len(others):
        return [names]
    starts = range(0, len(others), together)
    return [[STOCK, *others[start : start + together]] for start in starts]


def _check(facts: dict[str, dict[str, Any]]) -> None:
    """All have the same work, and fairseq is changed where the plugin belongs and only there."""
    assert len({fact["digest"] for fact in facts.values()}) <= 1, facts
    for name, fact in facts.items():
        assert fact["plugin"] == (WEIGHTS_OF.get(name, name) != STOCK), name


def _compared(crew: dict[str, Worker]) -> dict[str, dict[str, Any]]:
    """How many translations of each peer are those of the system whose weights it has."""
    found: dict[str, dict[str, Any]] = {}
    for name, original in WEIGHTS_OF.items():
        if name in crew and original in crew:
            ours = crew[name].ask("outputs", "decode")["outputs"]
            theirs = crew[original].ask("outputs", "decode")["outputs"]
            equal = sum(ours[number] == theirs[number] for number in theirs)
            found[name] = {"equal": equal, "compared": len(theirs), "equal_to": original}
            said = f"{equal} of {len(theirs)} translations are those of {label(original)}"
            print(f"{label(name)}: {said}", file=sys.stderr)
    return found


def _summary(
    kind: str, ours: list[float], stock: list[float] | None, facts: dict[str, Any]
) -> dict[str, Any]:
    """Numbers of one system: in the unit of ``kind``, and the ratio to stock round by round."""
    decoding = kind == "decode"
    if decoding:
        values = [facts["sentences"] / value for value in ours]
    else:
        values = [1000 * value / facts["batches"] for value in ours]
    record: dict[str, Any] = {"unit": MEASURES[kind][0], **numbers("", spread(values))}
    if stock:
        # Of times for times, of throughputs for throughputs.
        record |= numbers("ratio_", ratio(stock, ours) if decoding else ratio(ours, stock))
    turn = {key: facts[key] for key in ("batches", "sentences", "setting") if facts[key]}
    return {**record, **turn, "rounds": len(ours), "seconds": [round(value, 6) for value in ours]}


def _checkpoint(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    systems = [system for system in SYSTEMS if system not in WEIGHTS_OF]
    if not equals or name not in systems:
        raise argparse.ArgumentTypeError(f"{text}: write SYSTEM=FILE, SYSTEM of {systems}")
    return name, Path(path)


def _count(text: str) -> int:
    """Type of an option: an integer of at least 0."""
    return 0 if text == "0" else positive(text)


def _parser() -> Parser:
    parser = Parser("bench speed", __doc__)
    add = parser.add_argument
    add("--table", type=Path, nargs="+", help="time nothing; these files as Markdown on stdout")
    add("--readme", type=Path, help="with --table: file whose section is rewritten")
    add("--check", action="store_true", help="with --readme: only fail if it would change")
    add("--size", nargs="+", default=["tiny"], choices=sorted(SIZES), help="default tiny")
    add("--systems", nargs="+", default=list(SYSTEMS), choices=SYSTEMS, help="default all")
    add("--measures", nargs="+", default=list(MEASURES), choices=MEASURES, help="default all")
    add("--device", default="auto", choices=("auto", "cpu", "cuda"), help="auto: CPU, GPU if any")
    add("--fp16", action="store_true", help="on the GPU, half precision as well")
    add("--threads", type=positive, help="of the CPU, for each system (default: torch's own)")
    add("--rounds", type=positive, default=9, help="timed turns of each system (default 9)")
    add("--warmup", type=positive, default=2, help="untimed turns before (default 2)")
    add(
        "--together",
        type=_count,
        default=0,
        help="but for decoding, systems that take turns with stock at a time, each of which keeps "
        "its memory (default 0: all)",
    )
    add("--data", type=Path, help="folder made by fairseq-preprocess (default: made-up sentences)")
    add("--vocabulary", type=positive, default=6000, help="of made-up sentences (default 6000)")
    add("--train-tokens", type=positive, default=4096, help="in a batch (default 4096)")
    add("--decode-tokens", type=positive, default=1024, help="in a source batch (default 1024)")
    add("--batches", type=_count, default=2, help="in one turn (default 2; 0: the whole data set)")
    add(
        "--decode-length",
        type=_count,
        default=20,
        help="tokens that every hypothesis is made to have (default 20; 0: the model decides)",
    )
    add("--beam", type=positive, default=10, help="default 10")
    add("--lenpen", type=float, default=0.6, help="default 0.6")
    add("--dropout", type=float, default=0.3, help="of all systems (default 0.3)")
    add("--options", default="", help="further fairseq-train options for all systems, in one word")
    add(
        "--checkpoint",
        type=_checkpoint,
        action="append",
        default=[],
        metavar="SYSTEM=FILE",
        help="weights of a system, also for its peers: ctranslate2 has those of stock",
    )
    return parser


def _places(args: argparse.Namespace) -> list[tuple[str, bool]]:
    """Devices, each with whether it computes in half precision."""
    devices = ["cpu", "cuda"] if args.device == "auto" else [args.device]
    need_device(args.device)
    if not torch.cuda.is_available():
        devices = ["cpu"]
    places = [(device, False) for device in devices]
    return places + ([("cuda", True)] if args.fp16 and "cuda" in devices else [])


def _available(names: list[str], device: str) -> list[str]:
    """Those of ``names`` that run here; the others are named on stderr.

    Raises UserError if none is left.
    """
    found = []
    for name in names:
        why = unavailable(name, device)
        if why is None:
            found.append(name)
        else:
            print(f"{name}: left out, {why}", file=sys.stderr)
    if not found:
        raise UserError("none of these systems can be measured here")
    return found


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    args = _parser().parse_args(words)
    args.checkpoint = dict(args.checkpoint)

    def body() -> None:
        if args.table:
            text = table([record for path in args.table for record in read_records(path, KEYS)])
            if args.readme is None:
                print(text, end="")
            else:
                put_section(args.readme, "benchmark", text, args.check)
            return
        args.threads = args.threads or torch.get_num_threads()
        command = portable(shlex.join(["diet-mt", "bench", "speed", *words]))
        for device, half in _places(args):
            names = _available(args.systems, device)
            for size in args.size:
                for record in measure(names, size, device, half, args):
                    facts = machine(device, half, command) | {"threads": args.threads}
                    print(json.dumps({**record, **facts}), flush=True)

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
