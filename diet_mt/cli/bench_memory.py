"""Peak memory of a translation model over a long sentence pair: a table of positions, or factors.

    diet-mt bench memory > cpu.jsonl
    diet-mt bench memory --plot long_sequences.png cpu.jsonl

DIET-ABS on either of its two ways, DIET-REL and stock fairseq beside them: two layers on each side,
width 256, one pair of as many source as target tokens. Each case and length runs in a process of
its own. Linux only. JSON lines on stdout, progress on stderr.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..command_line import Parser, positive

LENGTHS = (1024, 2048, 4096, 8192)


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("--plot", type=Path, nargs=2, metavar=("PNG", "FILE"), help="measure nothing; a picture")
    add("--cases", nargs="+", default=[], help="'diet_abs, factors', diet_rel, ... (default all)")
    add("--lengths", type=positive, nargs="+", default=LENGTHS, help=f"tokens (default {LENGTHS})")
    add("--threads", type=positive, help="of the CPU (default: torch's own choice)")


def run(args: argparse.Namespace) -> None:
    from ..bench import long_sequences
    from ..bench.machine import command_of, read_records
    from ..drawing import save

    if args.plot:
        picture, file = args.plot
        figure = long_sequences.plot(read_records([file], long_sequences.KEYS))
        save(figure, picture, rows=[file])
    else:
        command = command_of("bench memory", args.words)
        long_sequences.measure_all(args.cases, args.lengths, args.threads or 0, command)
