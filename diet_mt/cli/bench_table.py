"""Measurements of speed and memory, and of both searches, as tables.

    diet-mt bench table results/benchmark/*.jsonl           Markdown on stdout

FILE is JSON lines that diet-mt bench speed, encoder, memory or padding wrote, or diet-mt parity;
several of one command make one page.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..command_line import Parser
from ..errors import UserError


def arguments(parser: Parser) -> None:
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="JSON lines")


def run(args: argparse.Namespace) -> None:
    from ..bench.tables import table_of

    table = table_of(args.files)
    if table is None:
        raise UserError(f"{args.files[0]}: holds no measurements; see diet-mt bench table --help")
    print(table, end="")
