"""The commands ``diet-mt bench``: a class each, whose docstring is the help."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..bench import BASELINES, COUNTED, LENGTHS, MEASURES, PRECISIONS, SHAPES
from ..command_line import Parser, by_name, count, finite, pair, positive, share, shell_words


def source_and_target(text: str) -> tuple[int, int]:
    """Type of an option: two lengths, as 16+15."""
    source, _, target = text.partition("+")
    return positive(source), positive(target)


class Speed:
    """Speed of training, forward pass and decoding: stock fairseq, our encodings, CTranslate2.

        diet-mt bench speed --size tiny --data data/multi30k.en-de/bin > speed.jsonl
        diet-mt bench speed --device cuda --measures train --systems "stock --fp16" "alibi --bf16"
        diet-mt bench speed --variant "t5.published=t5 --position-in encoder,decoder"

    A system is a name, and fairseq-train options for it alone. Each has its own process, stock
    fairseq one without the plugin; they take turns. Weights are random, or those of --checkpoint.
    Not timed: reading data, moving it to the device, building and compiling models, choosing
    CTranslate2's layout. Ratios are to the fastest stock system. With --decode-length 0
    translations are compared: those of ctranslate2 with stock's, those of SYSTEM:fairseq (our
    model, fairseq's search) with SYSTEM's. JSON lines on stdout, progress on stderr.
    """

    @staticmethod
    def arguments(parser: Parser) -> None:
        add = parser.add_argument
        add("--size", nargs="+", default=["tiny"], help="tiny, base, big (default tiny)")
        what = "stock, diet_rel, ctranslate2, 'stock --fp16', 'diet_rel --bf16', ... (all)"
        add("--systems", nargs="+", default=[], help=what)
        add("--measures", nargs="+", default=MEASURES, choices=MEASURES, help="default all")
        add("--device", default="cpu", choices=("cpu", "cuda"), help="default cpu")
        add("--threads", type=positive, help="CPU threads of each system (default: torch's)")
        add("--rounds", type=positive, default=9, help="timed turns of each system (default 9)")
        add("--warmup", type=count, default=1, help="untimed turns after set-up (default 1)")
        what = "no second round begins after (default 0: no limit)"
        add("--seconds", type=count, default=0, help=what)
        add("--data", type=Path, metavar="FOLDER", help="bin folder (default: random sentences)")
        what = "dictionary of random sentences (default 6000)"
        add("--vocabulary", type=positive, default=6000, help=what)
        many: dict[str, Any] = {"type": positive, "nargs": "+"}
        add("--train-tokens", **many, default=[4096], help="of a batch (default 4096)")
        what = "of random batches, one for each source+target in a turn (default: as in the data)"
        several: dict[str, Any] = {"nargs": "+", "action": "append", "default": []}
        add("--lengths", **several, type=source_and_target, metavar="S+T", help=what)
        add("--decode-tokens", **many, default=[1024], help="of a source batch (default 1024)")
        add("--decode-sentences", **many, default=[], help="of a batch, instead of tokens")
        add("--batches", type=count, default=2, help="in a turn (default 2; 0: the whole data set)")
        what = "tokens of every hypothesis (default 20; 0: the model decides)"
        add("--decode-length", type=count, default=20, help=what)
        add("--beam", type=positive, default=10, help="default 10")
        add("--lenpen", type=finite, default=0.6, help="default 0.6")
        add("--dropout", type=share, default=0.3, help="of all systems (default 0.3)")
        named: dict[str, Any] = {"type": pair, "action": "append", "default": []}
        what = "one more system: an encoding, and fairseq-train options for it alone"
        add("--variant", **named, metavar="NAME=WORDS", help=what)
        what = "further fairseq-train options for all systems, as one word"
        add("--options", default="", help=what)
        what = "weights of a system, and of those that decode with its weights"
        add("--checkpoint", **named, metavar="SYSTEM=FILE", help=what)

    @staticmethod
    def run(args: argparse.Namespace) -> None:
        from ..bench.speed import measure_all

        files = by_name(args.checkpoint, "--checkpoint")
        args.checkpoint = {name: Path(file) for name, file in files.items()}
        variants = by_name(args.variant, "--variant")
        args.variant = {name: shell_words(text, name) for name, text in variants.items()}
        args.options = shell_words(args.options, "--options")
        measure_all(args)


class Memory:
    """Peak memory of a translation model over a long sentence pair.

        diet-mt bench memory > memory.jsonl

    DIET-ABS with a table of biases and with factors in queries and keys, DIET-REL and stock
    fairseq: two layers on each side, width 256, as many target tokens as source tokens. Each case
    and length runs in a process of its own. Linux only. JSON lines on stdout, progress on stderr.
    """

    @staticmethod
    def arguments(parser: Parser) -> None:
        add = parser.add_argument
        add("--cases", nargs="+", default=[], help="'diet_abs, factors', diet_rel, ... (all)")
        what = f"tokens on either side (default {' '.join(map(str, LENGTHS))})"
        add("--lengths", type=positive, nargs="+", default=LENGTHS, help=what)
        add("--threads", type=positive, help="of the CPU (default: torch's)")

    @staticmethod
    def run(args: argparse.Namespace) -> None:
        from ..bench.memory import measure_all

        measure_all(args)


class Encoder:
    """Cost of each encoding in BERT over learned positions (Chen et al. 2021, table 1).

        diet-mt bench encoder --shapes small base > encoder.jsonl

    Training step and inference of BERT_SMALL and BERT_BASE over two segments, with the paper's
    models: DIET with segments per head, -ABS of rank 128 and shared; the others with segments at
    the input, TUPE with its [CLS] untied, Shaw's vectors on keys and values, unclipped. Each
    encoding takes turns with the baseline, and ratios are taken within a round; the row of the
    baseline compares two copies of it. --over segments-at-input: the baseline is the same encoding
    with segments at the input. A training step is masked language modelling as of BERT: 15 % of the
    tokens are predicted (30,000 WordPieces, tied), dropout 0.1, Adam. JSON lines on stdout,
    progress on stderr.
    """

    @staticmethod
    def arguments(parser: Parser) -> None:
        add = parser.add_argument
        add("--shapes", nargs="+", default=["small"], choices=SHAPES, help="default small")
        add("--encodings", nargs="+", default=[], help="diet-rel, t5, ... (default all)")
        kinds = MEASURES[:2]
        add("--measures", nargs="+", default=kinds, choices=kinds, help="default both")
        add("--over", default=BASELINES[0], choices=BASELINES, help="baseline (default learned)")
        add("--device", default="cpu", choices=("cpu", "cuda"), help="default cpu")
        add("--tokens", type=positive, default=128, help="of a sentence (default 128)")
        add("--batch", type=positive, help="sentences (default: small 8, base 2)")
        add("--rounds", type=positive, default=21, help="timed turns of each pair (default 21)")
        add("--warmup", type=positive, default=2, help="untimed turns before (default 2)")

    @staticmethod
    def run(args: argparse.Namespace) -> None:
        from ..bench.encoder import measure_all

        measure_all(args)


class Operators:
    """Operators of one training step, and how often Python waits for the device.

        diet-mt bench operators > operators.jsonl               without a GPU

    What fairseq's trainer dispatches to torch for one batch of random sentences, in a process for
    each system, stock fairseq without the plugin; most operators are one kernel of a GPU. Views and
    allocations, which are none, are counted apart. Device meta computes nothing and takes the
    branches of a GPU, with torch's kernels of a GPU for attention and dropout. JSON lines on
    stdout.
    """

    @staticmethod
    def arguments(parser: Parser) -> None:
        add = parser.add_argument
        add("--systems", nargs="+", default=COUNTED, help=f"default {' '.join(COUNTED)}")
        add("--size", default="base", help="tiny, base, big (default base)")
        add("--precisions", nargs="+", default=PRECISIONS, choices=PRECISIONS, help="default all")
        add("--device", default="meta", choices=("meta", "cpu"), help="default meta")
        add("--tokens", type=positive, default=16384, help="of a batch (default 16384)")
        add("--vocabulary", type=positive, default=32768, help="default 32768")

    @staticmethod
    def run(args: argparse.Namespace) -> None:
        from ..bench.operators import measure_all

        measure_all(args)


class Parameters:
    """Parameters of the encoders of Chen et al. 2021, table 6, and what the paper prints.

        diet-mt bench parameters                                Markdown on stdout

    Nothing is allocated. Time: seconds.
    """

    @staticmethod
    def arguments(parser: Parser) -> None:
        """None."""

    @staticmethod
    def run(args: argparse.Namespace) -> None:
        from ..bench.encoder import table_6

        print(table_6())


class Curves:
    """Learning curves: validation perplexity or loss over the updates, one for each training.

        diet-mt bench curves checkpoints/mlm/* --out results/mlm/curves
        diet-mt bench curves checkpoints/mine/* --loss --out results/curves/mine

    Reads what diet-mt train and pretrain leave in a training's folder (train.log, command), and
    curves that this command wrote (.jsonl). Writes OUT.jsonl, one training on a line, and OUT.png:
    all curves, and their second half on an axis of its own. Trainings with other validation
    sequences, masking or losses are refused.
    """

    @staticmethod
    def arguments(parser: Parser) -> None:
        add = parser.add_argument
        add("logs", type=Path, nargs="+", metavar="LOG", help="folder, train.log, or .jsonl")
        add("--out", type=Path, required=True, metavar="PATH", help="both files, without suffix")
        add("--loss", action="store_true", help="loss, on which --patience acts, not perplexity")
        add("--svg", action="store_true", help="OUT.svg instead of OUT.png")

    @staticmethod
    def run(args: argparse.Namespace) -> None:
        from ..report.curves import draw

        measure = "loss" if args.loss else "perplexity"
        draw(args.logs, args.out, "svg" if args.svg else "png", measure)
