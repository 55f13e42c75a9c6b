"""The same search by CTranslate2, on the weights of stock fairseq's Transformer."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ctranslate2
from ctranslate2.converters import Converter, fairseq
from ctranslate2.specs import TransformerSpec
from fairseq.data import Dictionary
from torch import nn

from .workload import LONGEST_OUTPUT, Case, Job

# Batches that are tried, as translate_batch takes them: its own measure and how many of it.
_BATCHES = (
    *(("examples", size) for size in (8, 16, 32, 64)),
    *(("tokens", size) for size in (512, 1024, 2048)),
)
_TRIED_ON = 128  # sentences at most, when settings are tried
_FINALISTS = 3  # settings that are tried twice more
_PASSES = 2


@dataclass(frozen=True)
class Layout:
    """How CTranslate2 spreads the work."""

    inter_threads: int  # batches at a time
    intra_threads: int  # processor threads for each
    batch_type: str
    max_batch_size: int

    def __str__(self) -> str:
        return (
            f"inter_threads {self.inter_threads}, intra_threads {self.intra_threads}, "
            f"max_batch_size {self.max_batch_size} {self.batch_type}"
        )


class CTranslate2Decoding(Case):
    """Token lists in, token lists out, float32, in the fastest of the layouts tried."""

    def __init__(self, task: Any, model: nn.Module, data: list[Any], job: Job) -> None:
        super().__init__(task, model, data)
        self.job = job
        self._folder = tempfile.TemporaryDirectory(prefix="ctranslate2-")
        self.words = task.source_dictionary, task.target_dictionary
        _InMemory(model, *self.words).convert(str(Path(self._folder.name, "model")))
        self.numbers, self.sources = _sentences(data, self.words[0])
        self.layout = Layout(1, job.threads, "examples", _BATCHES[0][1])
        self.translator = self._translator()
        self._choose()
        self.setting = f"{ctranslate2.__version__}: {self.layout}"

    def __call__(self) -> None:
        self._translate(self.sources)

    def run(self, batch: Any) -> list[list[str]]:
        return self._translate(_sentences([batch], self.words[0])[1])

    def outputs(self) -> dict[int, list[int]]:
        found = self._translate(self.sources)
        return {
            number: [self.words[1].index(word) for word in words]
            for number, words in zip(self.numbers, found, strict=True)
        }

    def _translator(self) -> ctranslate2.Translator:
        return ctranslate2.Translator(
            str(Path(self._folder.name, "model")),
            device="cpu",
            compute_type="float32",
            inter_threads=self.layout.inter_threads,
            intra_threads=self.layout.intra_threads,
        )

    def _translate(self, sources: list[list[str]]) -> list[list[str]]:
        # fairseq writes that many tokens and then the end mark: as many steps are made here, none
        # of which may be the end.
        steps = self.job.decode_length + 1 if self.job.decode_length else 0
        results = self.translator.translate_batch(
            sources,
            beam_size=self.job.beam,
            length_penalty=self.job.lenpen,
            max_decoding_length=steps or LONGEST_OUTPUT,
            min_decoding_length=steps or 1,
            max_batch_size=self.layout.max_batch_size,
            batch_type=self.layout.batch_type,
        )
        found = [result.hypotheses[0] for result in results]
        if steps and {len(words) for words in found} != {steps}:
            raise AssertionError(f"hypotheses of other lengths than {steps} tokens")
        return found

    def _choose(self) -> None:
        """Tries all layouts, the best of them twice more, and keeps the fastest."""
        step = -(-len(self.sources) // _TRIED_ON)
        sample = self.sources[::step]
        seconds: dict[Layout, float] = {}
        for layout in _layouts(self.job.threads):
            seconds[layout] = self._seconds(layout, sample)
        for layout in sorted(seconds, key=lambda one: seconds[one])[:_FINALISTS]:
            again = (self._seconds(layout, sample) for _ in range(_PASSES))
            seconds[layout] = min(seconds[layout], *again)
        self._take(min(seconds, key=lambda one: seconds[one]))

    def _take(self, layout: Layout) -> None:
        threads = ("inter_threads", "intra_threads")
        other = any(getattr(layout, name) != getattr(self.layout, name) for name in threads)
        self.layout = layout
        if other:
            self.translator = self._translator()
            self._translate(self.sources[: 4 * layout.inter_threads])  # what the first call sets up

    def _seconds(self, layout: Layout, sample: list[list[str]]) -> float:
        self._take(layout)
        start = time.perf_counter()
        self._translate(sample)
        return time.perf_counter() - start


def _layouts(threads: int) -> Iterator[Layout]:
    spreads = dict.fromkeys([(1, threads), (threads, 1)])  # with one thread they are the same
    for (inter, intra), (measure, size) in itertools.product(spreads, _BATCHES):
        yield Layout(inter, intra, measure, size)


def _sentences(data: list[Any], words: Dictionary) -> tuple[list[int], list[list[str]]]:
    """Numbers and source words of all sentences, without padding and end mark."""
    special = {words.pad(), words.eos()}
    numbers, sources = [], []
    for batch in data:
        numbers += batch["id"].tolist()
        for row in batch["net_input"]["src_tokens"].tolist():
            sources.append([words[token] for token in row if token not in special])
    return numbers, sources


class _InMemory(Converter):
    """CTranslate2's converter for fairseq, from a model that is loaded already.

    Its own ``FairseqConverter`` reads the checkpoint itself, and not in the way of this fairseq.
    """

    def __init__(self, model: nn.Module, source: Dictionary, target: Dictionary) -> None:
        self.model, self.source, self.target = model.eval().requires_grad_(False), source, target

    def _load(self) -> TransformerSpec:
        encoder: Any = self.model.encoder
        if encoder.cfg.activation_fn != "relu":
            raise ValueError(f"only relu is converted, not {encoder.cfg.activation_fn}")
        decoder: Any = self.model.decoder
        spec = TransformerSpec.from_config(
            (len(encoder.layers), len(decoder.layers)),
            encoder.layers[0].self_attn.num_heads,
            pre_norm=encoder.layers[0].normalize_before,
            layernorm_embedding=encoder.layernorm_embedding is not None,
        )
        fairseq.set_transformer_encoder(spec.encoder, encoder)
        fairseq.set_transformer_decoder(spec.decoder, decoder)
        for words, register in (
            (self.source, spec.register_source_vocabulary),
            (self.target, spec.register_target_vocabulary),
        ):
            register(["<blank>" if word == "<pad>" else word for word in words.symbols])
        # fairseq begins a translation with the end mark, and ends a source with it.
        spec.config.decoder_start_token = spec.config.eos_token
        spec.config.add_source_eos = True
        return spec
