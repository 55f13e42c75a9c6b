"""What padding costs in memory: an encoder's activations, with three pads in the batch and without.

    diet-mt bench padding > padding.jsonl

Six layers, width 256, 8 heads, 16 sentences of 128 tokens. A bias serves the whole batch; with a
mask of the padding added to it beforehand it would be one for each sentence. Counted are the bytes
that a training step keeps for the gradients, and the most that a forward pass of evaluation holds
at a time. JSON lines on stdout.
"""

from __future__ import annotations

import argparse

from ..command_line import Parser


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("--encodings", nargs="+", default=[], help="default none diet-rel diet-abs t5")


def run(args: argparse.Namespace) -> None:
    from ..bench import padding_memory
    from ..bench.machine import command_of

    padding_memory.measure_all(args.encodings, command_of("bench padding", args.words))
