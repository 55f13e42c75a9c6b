"""Times fairseq's own Transformer, ours and CTranslate2: training, forward pass, decoding.

    diet-mt bench speed --size tiny --data data/multi30k.en-de/bin > bench.jsonl
    diet-mt bench speed --variant "t5.published=t5 --position-in encoder,decoder"

Each system lives in a process of its own, stock fairseq in one without the plugin; one at a time
has its turn, and another one begins each round. Random weights, unless --checkpoint gives real
ones. Not timed: reading data, moving it to the device, building models, choosing CTranslate2's
layout. Translations are compared where the model decides how long they are (--decode-length 0):
those of ctranslate2 with stock's, those of SYSTEM:fairseq (our model, fairseq's search) with
SYSTEM's. JSON lines on stdout, one for each system and measure; progress on stderr.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..command_line import (
    Parser,
    by_name,
    count,
    filled,
    finite,
    pair,
    positive,
    share,
    shell_words,
)

MEASURES = ("train", "forward", "decode")


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("--size", nargs="+", default=["tiny"], help="tiny, base, big (default tiny)")
    add("--systems", nargs="+", default=[], help="stock, diet_rel, ctranslate2, ... (default all)")
    add("--measures", nargs="+", default=MEASURES, choices=MEASURES, help="default all")
    add("--device", default="auto", choices=("auto", "cpu", "cuda"), help="auto: CPU, GPU if any")
    add("--fp16", action="store_true", help="on the GPU, half precision as well")
    add("--threads", type=positive, help="of the CPU, for each system (default: torch's own)")
    add("--rounds", type=positive, default=9, help="timed turns of each system (default 9)")
    add("--warmup", type=positive, default=2, help="untimed turns before (default 2)")
    add(
        "--together",
        type=count,
        default=0,
        help="but for decoding, systems that take turns with stock at a time, each of which keeps "
        "its memory (default 0: all)",
    )
    add("--data", type=Path, metavar="FOLDER", help="bin folder (default: made-up sentences)")
    add("--vocabulary", type=positive, default=6000, help="of made-up sentences (default 6000)")
    add("--train-tokens", type=positive, default=4096, help="in a batch (default 4096)")
    add("--decode-tokens", type=positive, default=1024, help="in a source batch (default 1024)")
    add("--batches", type=count, default=2, help="in one turn (default 2; 0: the whole data set)")
    add(
        "--decode-length",
        type=count,
        default=20,
        help="tokens that every hypothesis is made to have (default 20; 0: the model decides)",
    )
    add("--beam", type=positive, default=10, help="default 10")
    add("--lenpen", type=finite, default=0.6, help="default 0.6")
    add("--dropout", type=share, default=0.3, help="of all systems (default 0.3)")
    add(
        "--variant",
        type=pair,
        action="append",
        default=[],
        metavar="NAME=WORDS",
        help="timed beside --systems: an encoding, and further fairseq-train options of it alone",
    )
    add("--options", default="", help="further fairseq-train options for all systems, in one word")
    add(
        "--checkpoint",
        type=pair,
        action="append",
        default=[],
        metavar="SYSTEM=FILE",
        help="weights of a system, also for its peers: ctranslate2 has those of stock",
    )


def run(args: argparse.Namespace) -> None:
    from ..bench.benchmark import SpeedSettings, measure_all
    from ..bench.machine import command_of

    files = by_name(args.checkpoint, "--checkpoint")
    args.checkpoint = {name: Path(file) for name, file in files.items()}
    variants = by_name(args.variant, "--variant")
    args.variant = {name: shell_words(text, name) for name, text in variants.items()}
    args.options = shell_words(args.options, "--options")
    measure_all(filled(SpeedSettings, args), command_of("bench speed", args.words))
