"""The commands ``diet-mt bench``: options, and the functions that carry them out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from ..system.options import (
    Command,
    Count,
    Finite,
    Folder,
    Positive,
    Share,
    by_name,
    option,
    pair,
    positive,
    shell_words,
)

MEASURES = ("train", "forward", "decode")
SHAPES = ("base", "small")
BASELINES = ("learned", "segments-at-input")
DEVICES = ("cpu", "cuda")
PRECISIONS = ("fp32", "fp16", "bf16")


def source_and_target(text: str) -> tuple[int, int]:
    """Two lengths, as 16+15."""
    source, _, target = text.partition("+")
    return positive(source), positive(target)


@dataclass(kw_only=True)
class Speed(Command):
    """Speed of training, forward pass and decoding: stock fairseq, our encodings, CTranslate2.

        diet-mt bench speed --size tiny --data data/multi30k.en-de/bin > speed.jsonl
        diet-mt bench speed --device cuda --measures train --systems "stock --fp16" "alibi --bf16"
        diet-mt bench speed --variant "t5.published=t5 --position-in encoder,decoder"

    A system is a name with fairseq-train options for it alone. Each runs in its own process, stock
    fairseq without the plugin; they take turns. Weights are random, or those of --checkpoint.
    Not timed: reading data, moving it to the device, building and compiling models, choosing
    CTranslate2's layout. Ratios are to the fastest stock system. With --decode-length 0
    translations are compared: those of ctranslate2 with stock's, those of SYSTEM:fairseq (our
    model, fairseq's search) with SYSTEM's. JSON lines on stdout, progress on stderr.
    """

    size: Sequence[str] = option("tiny, base, big", ("tiny",))
    systems: Sequence[str] = option(
        "stock, diet_rel, ctranslate2, 'stock --fp16', 'diet_rel --bf16', ... (default all)", ()
    )
    measures: Sequence[str] = option("measures", MEASURES, choices=MEASURES)
    device: str = option("device", "cpu", choices=DEVICES)
    threads: Positive | None = option("CPU threads of each system (default torch's)", None)
    rounds: Positive = option("timed turns of each system", 9)
    warmup: Count = option("untimed turns after set-up", 1)
    seconds: Count = option("no second round begins later; 0: no limit", 0)
    data: Folder | None = option("bin folder (default random sentences)", None)
    vocabulary: Positive = option("size of the dictionary of random sentences", 6000)
    train_tokens: Sequence[Positive] = option("tokens of a batch", (4096,))
    lengths: Sequence[Sequence[Annotated[tuple[int, int], source_and_target]]] = option(
        "source and target lengths of random batches, one batch for each in a turn (default: as "
        "in the data)",
        (),
        metavar="S+T",
        repeat=True,
    )
    decode_tokens: Sequence[Positive] = option("tokens of a source batch", (1024,))
    decode_sentences: Sequence[Positive] = option("sentences of a batch, instead of tokens", ())
    batches: Count = option("batches in a turn; 0: the whole data set", 2)
    decode_length: Count = option("tokens of every hypothesis; 0: the model decides", 20)
    beam: Positive = option("beam size", 10)
    lenpen: Finite = option("exponent of the length penalty", 0.6)
    dropout: Share = option("dropout of all systems", 0.3)
    variant: Annotated[Any, pair] = option(
        "another system: an encoding with fairseq-train options for it alone",
        (),
        metavar="NAME=WORDS",
        repeat=True,
    )
    options: Annotated[Any, str] = option(
        "further fairseq-train options of all systems, as one word", ""
    )
    checkpoint: Annotated[Any, pair] = option(
        "weights of a system, and of those that decode with its weights",
        (),
        metavar="SYSTEM=FILE",
        repeat=True,
    )
    words: Sequence[str] = ()

    def run(self) -> None:
        from .speed import measure_all

        files = by_name(self.checkpoint, "--checkpoint")
        self.checkpoint = {name: Path(file) for name, file in files.items()}
        variants = by_name(self.variant, "--variant")
        self.variant = {name: shell_words(text, name) for name, text in variants.items()}
        self.options = shell_words(self.options, "--options")
        measure_all(self)


@dataclass(kw_only=True)
class Memory(Command):
    """Peak memory of a translation model over a long sentence pair.

        diet-mt bench memory > memory.jsonl

    DIET-ABS with a table of biases and with factors in queries and keys, DIET-REL and stock
    fairseq: two layers on each side, width 256, as many target tokens as source tokens. Each case
    and length runs in a process of its own. Linux only. JSON lines on stdout, progress on stderr.
    """

    cases: Sequence[str] = option("'diet_abs, factors', diet_rel, ... (default all)", ())
    lengths: Sequence[Positive] = option("tokens on either side", (1024, 2048, 4096, 8192))
    threads: Positive | None = option("CPU threads (default torch's)", None)
    words: Sequence[str] = ()

    def run(self) -> None:
        from .speed import measure_memory

        measure_memory(self)


@dataclass(kw_only=True)
class Encoder(Command):
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

    shapes: Sequence[str] = option("sizes of BERT", ("small",), choices=SHAPES)
    encodings: Sequence[str] = option("diet-rel, t5, ... (default all)", ())
    measures: Sequence[str] = option("measures", MEASURES[:2], choices=MEASURES[:2])
    over: str = option("baseline", BASELINES[0], choices=BASELINES)
    device: str = option("device", "cpu", choices=DEVICES)
    tokens: Positive = option("tokens of a sentence", 128)
    batch: Positive | None = option("sentences (default small 8, base 2)", None)
    rounds: Positive = option("timed turns of each pair", 21)
    warmup: Positive = option("untimed turns before", 2)
    words: Sequence[str] = ()

    def run(self) -> None:
        from .encoder import measure_all

        measure_all(self)


@dataclass(kw_only=True)
class Operators(Command):
    """Operators of one training step, and how often Python waits for the device.

        diet-mt bench operators > operators.jsonl               without a GPU

    What fairseq's trainer dispatches to torch for one batch of random sentences, in a process for
    each system, stock fairseq without the plugin; most operators are one kernel of a GPU. Views and
    allocations, which are none, are counted apart. Device meta computes nothing and takes the
    branches of a GPU, with torch's kernels of a GPU for attention and dropout. JSON lines on
    stdout.
    """

    systems: Sequence[str] = option(
        "systems", ("stock", "sinusoidal", "rotary", "diet_rel", "diet_abs")
    )
    size: str = option("tiny, base, big", "base")
    precisions: Sequence[str] = option("precisions", PRECISIONS, choices=PRECISIONS)
    device: str = option("device", "meta", choices=("meta", "cpu"))
    tokens: Positive = option("tokens of a batch", 16384)
    vocabulary: Positive = option("size of the dictionary", 32768)
    words: Sequence[str] = ()

    def run(self) -> None:
        from .operators import measure_all

        measure_all(self)


@dataclass(kw_only=True)
class Parameters(Command):
    """Parameters of the encoders of Chen et al. 2021, table 6, and what the paper prints.

        diet-mt bench parameters                                Markdown on stdout

    Nothing is allocated. Time: seconds.
    """

    def run(self) -> None:
        from .encoder import table_6

        print(table_6())
