"""Options and help of the commands ``diet-mt bench``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from ..system.options import (
    Command,
    Count,
    Finite,
    Folder,
    Pair,
    Positive,
    Share,
    option,
    positive,
)

MEASURES = ("train", "forward", "decode")
SHAPES = ("base", "small")
BASELINES = ("learned", "segments-at-input")
DEVICES = ("cpu", "cuda")


def source_and_target(text: str) -> tuple[int, int]:
    """Source and target length in a text such as ``16+15``."""
    source, _, target = text.partition("+")
    return positive(source), positive(target)


@dataclass(frozen=True, kw_only=True)
class Speed(Command):
    """Measures training and decoding speed against stock fairseq and CTranslate2.

        diet-mt bench speed --size tiny --data data/multi30k.en-de/bin > speed.jsonl
        diet-mt bench speed --device cuda --measures train --systems "stock --fp16" "alibi --bf16"

    A system is a name, optionally with its own fairseq-train options. Each system runs in its own
    process, stock fairseq without the plugin, and the systems take turns. Weights are random, or
    those of --checkpoint. Times exclude reading the data, transfers to the device, building and
    compiling models, and the choice of CTranslate2's layout. Ratios are relative to the fastest
    stock system. With --decode-length 0, translations are also compared: those of ctranslate2 with
    stock's, those of SYSTEM:fairseq (this package's model in fairseq's search) and SYSTEM:int8 with
    SYSTEM's. Prints JSON lines to stdout and progress to stderr.
    """

    size: Sequence[str] = option("model sizes: tiny, base, big", ("tiny",))
    systems: Sequence[str] = option(
        "systems: stock, diet_rel, ctranslate2, 'stock --fp16', ... (default all)", ()
    )
    measures: Sequence[str] = option("what to time", MEASURES, choices=MEASURES)
    device: str = option("device", "cpu", choices=DEVICES)
    threads: Positive | None = option("CPU threads of each system (default torch's)", None)
    rounds: Positive = option("number of timed rounds", 9)
    warmup: Count = option("number of untimed warm-up rounds", 1)
    seconds: Count = option("seconds after which no further round starts; 0: none", 0)
    data: Folder | None = option("bin folder (default: random sentences)", None)
    vocabulary: Positive = option("vocabulary size of random sentences", 6000)
    train_tokens: Sequence[Positive] = option("tokens of a training batch", (4096,))
    lengths: Sequence[Sequence[Annotated[tuple[int, int], source_and_target]]] = option(
        "lengths of random sources and targets, a batch for each pair (default: those of the data)",
        (),
        metavar="S+T",
        repeat=True,
    )
    decode_tokens: Sequence[Positive] = option("source tokens of a decoding batch", (1024,))
    decode_sentences: Sequence[Positive] = option("sentences of a decoding batch", ())
    batches: Count = option("batches per round; 0: the whole data set", 2)
    decode_length: Count = option("fixed length of hypotheses; 0: until end of sentence", 20)
    beam: Positive = option("beam size", 10)
    lenpen: Finite = option("exponent of the length penalty", 0.6)
    dropout: Share = option("dropout of all systems", 0.3)
    checkpoint: Sequence[Pair] = option(
        "weights of a system and of its variants SYSTEM:fairseq, SYSTEM:int8, ctranslate2",
        (),
        metavar="SYSTEM=FILE",
        repeat=True,
    )

    def run(self) -> None:
        from .speed import measure_all

        measure_all(self)


@dataclass(frozen=True, kw_only=True)
class Memory(Command):
    """Measures the peak memory of a translation model over long sentence pairs.

        diet-mt bench memory > memory.jsonl

    Compares DIET-ABS with a bias matrix, DIET-ABS with factors in queries and keys, DIET-REL and
    stock fairseq, with two encoder and two decoder layers of width 256 and equal source and target
    lengths. Each case and length runs in its own process. Requires Linux. Prints JSON lines to
    stdout and progress to stderr.
    """

    cases: Sequence[str] = option("cases: 'diet_abs, factors', diet_rel, ... (default all)", ())
    lengths: Sequence[Positive] = option("source and target length", (1024, 2048, 4096, 8192))
    threads: Positive | None = option("CPU threads (default torch's)", None)

    def run(self) -> None:
        from .speed import measure_memory

        measure_memory(self)


@dataclass(frozen=True, kw_only=True)
class Encoder(Command):
    """Measures the cost of each encoding in BERT (Chen et al. 2021, table 1).

        diet-mt bench encoder --shapes small base > encoder.jsonl

    Times a training step and inference of BERT_SMALL and BERT_BASE over two segments, relative to
    learned positions. The models are the paper's: DIET with segments per head, DIET-ABS with shared
    tables of rank 128; the others with segments at the input, TUPE with untied [CLS], Shaw with
    unclipped vectors on keys and values. Each encoding takes turns with the baseline, and ratios
    are computed within a round; the row of the baseline compares two copies of it. With --over
    segments-at-input, the baseline is the same encoding with segments at the input. The training
    step is BERT's masked language modelling: 15 % of tokens predicted, 30,000 tied WordPieces,
    dropout 0.1, Adam. Prints JSON lines to stdout and progress to stderr.
    """

    shapes: Sequence[str] = option("sizes of BERT", ("small",), choices=SHAPES)
    encodings: Sequence[str] = option("encodings: diet-rel, t5, ... (default all)", ())
    measures: Sequence[str] = option("what to time", MEASURES[:2], choices=MEASURES[:2])
    over: str = option("baseline", BASELINES[0], choices=BASELINES)
    device: str = option("device", "cpu", choices=DEVICES)
    tokens: Positive = option("sequence length", 128)
    batch: Positive | None = option("batch size (default: 8 for small, 2 for base)", None)
    rounds: Positive = option("number of timed rounds", 21)
    warmup: Positive = option("number of untimed warm-up rounds", 2)

    def run(self) -> None:
        from .encoder import measure_all

        measure_all(self)


@dataclass(frozen=True, kw_only=True)
class Parameters(Command):
    """Counts the parameters of encoders, with those in table 6 of Chen et al. 2021.

        diet-mt bench parameters                                prints Markdown

    Takes some seconds and allocates no parameters.
    """

    def run(self) -> None:
        from .encoder import table_6

        print(table_6())
