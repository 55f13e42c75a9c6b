"""What each encoding costs an encoder, beside one with learned positions at the input.

    diet-mt bench encoder --shapes small base > results/encoder_cost/cpu.jsonl

The measure of Chen et al. 2021, table 1: training step and inference forward pass of BERT_SMALL and
BERT_BASE over two segments, with the paper's models: DIET with segments per head, -ABS of rank 128
and shared; the others with segments at the input, TUPE with its [CLS] untied, Shaw's vectors on
keys and values, unclipped, as the parameters of table 6 have it. Each encoding takes turns with the
baseline, and ratios are taken within a turn of both; the baseline's own row is that of a second
copy of it: the error. --over segments-at-input: with itself with segments at the input, so the
ratio is that of segments per head alone. A training step is masked language modelling as BERT does
it: 15 % of the tokens go through the output layer (30,000 WordPieces, tied), dropout 0.1 also on
attention weights, Adam. JSON lines on stdout, progress on stderr.
"""

from __future__ import annotations

import argparse

from ..command_line import Parser, filled, positive

SHAPES = ("base", "small")
MEASURES = ("train", "forward")
OVER = ("learned", "segments-at-input")


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("--shapes", nargs="+", default=["small"], choices=SHAPES, help="default small")
    add("--encodings", nargs="+", default=[], help="diet-rel, t5, ... (default all)")
    add("--measures", nargs="+", default=MEASURES, choices=MEASURES, help="default both")
    add("--over", default=OVER[0], choices=OVER, help="what it takes turns with (default learned)")
    add("--device", default="cpu", choices=("cpu", "cuda"), help="default cpu")
    add("--tokens", type=positive, default=128, help="in a sentence (default 128)")
    add("--batch", type=positive, help="sentences (default: small 8, base 2)")
    add("--rounds", type=positive, default=21, help="timed turns of each pair (default 21)")
    add("--warmup", type=positive, default=2, help="untimed turns before (default 2)")


def run(args: argparse.Namespace) -> None:
    from ..bench import encoder_cost
    from ..bench.machine import command_of

    settings = filled(encoder_cost.EncoderSettings, args)
    encoder_cost.measure_all(args.shapes, settings, command_of("bench encoder", args.words))
