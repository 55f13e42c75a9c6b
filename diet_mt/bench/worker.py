"""Worker process of a benchmark: one system, with or without the plugin.

This file is run by its path and imports nothing from the package, because stock fairseq is measured
without the plugin, and fairseq skips a --user-dir that is already in ``sys.modules``. Messages are
lines of JSON. The first line on stdin is the :class:`Job`; each further one, such as
``["turn", {}]``, is a method of :class:`System` with its arguments, and gets one line as an answer.
Between messages the worker uses no CPU time. An error ends it with a traceback on stderr.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import os
import sys
import tempfile
import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from fairseq import checkpoint_utils, options, tasks, utils
from fairseq.data import Dictionary, LanguagePairDataset
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks.translation import TranslationTask
from fairseq.trainer import Trainer

RANDOM_DATA = "random"  # in place of a data folder
LONGEST_OUTPUT = 200  # maximum tokens of a hypothesis; the default of fairseq-generate
# Lengths of random sentences, including the end-of-sentence symbol, as in Multi30k in subwords.
_MEAN, _DEVIATION, _SHORTEST, _LONGEST = 15.0, 5.0, 5, 40
_SENTENCES = 4000
_WARMUP_TOKENS = 8
# Candidates for batches of CTranslate2: batch_type and max_batch_size of translate_batch.
_BATCHES = [("examples", size) for size in (8, 16, 32, 64)]
_BATCHES += [("tokens", size) for size in (512, 1024, 2048)]
_TRIAL_SENTENCES = 128  # maximum number of sentences for timing these candidates
# --activation-fn -> name in CTranslate2.
ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu_accurate": "GELUTanh"}

Run = Callable[[Any], Any]  # the work on one batch
Lengths = Callable[[np.random.Generator], Any]


@dataclass(frozen=True)
class Job:
    """One system and its work. Numbers of tokens include padding, as in fairseq."""

    words: list[str]  # arguments of fairseq-train: data or RANDOM_DATA, then options
    user_dir: str | None  # None: fairseq without plugins
    threads: int
    vocabulary: int  # size of the dictionary of random sentences
    engine: str = "fairseq"  # of decoding: fairseq or ctranslate2
    compute_type: str = "float32"  # of ctranslate2
    checkpoint: str | None = None  # None: random weights, the same for the same words
    constants: dict[str, int] = field(default_factory=dict)  # module:name -> value to set
    device: str = "cpu"
    batches: int = 0  # per turn, unless lengths are given; 0: the whole data set
    decode_length: int = 0  # tokens of every hypothesis; 0: until the end-of-sentence symbol
    beam: int = 1
    lenpen: float = 1.0


class System:
    """The task of a job, with the model and batches for one kind of work."""

    def __init__(self, job: Job) -> None:
        utils.import_user_module(Namespace(user_dir=job.user_dir))
        for place, value in job.constants.items():
            module, _, name = place.partition(":")
            setattr(import_module(module), name, value)
        args = options.parse_args_and_arch(options.get_training_parser(), job.words)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # hydra's, about fairseq
            self.cfg = convert_namespace_to_omegaconf(args)
        # fairseq sets tpu with --bf16.
        self.cfg.common.tpu, self.cfg.common.cpu = False, job.device == "cpu"
        self.cfg.distributed_training.distributed_world_size = 1
        self.job, self.kind = job, ""
        self.setup = 0.0  # seconds of building models and of first passes
        self.task = self._random_task() if job.words[0] == RANDOM_DATA else self._real_task()
        self.model: Any = None
        self.data: list[Any] = []
        self.setting = ""  # version and layout of CTranslate2

    def _real_task(self) -> Any:
        task = tasks.setup_task(self.cfg.task)
        for split in ("train", "test"):
            task.load_dataset(split)
        return task

    def _random_task(self) -> Any:
        words = Dictionary()
        for number in range(self.job.vocabulary - len(words)):
            words.add_symbol(f"word{number}")
        task = TranslationTask(self.cfg.task, words, words)
        for seed, split in enumerate(("train", "test")):
            task.datasets[split] = random_pairs(words, seed)
        return task

    def prepare(self, kind: str, **load: Any) -> dict[str, Any]:
        """Builds the model and batches of a kind of work, runs them once, and returns facts.

        ``kind``: train, forward or decode; ``load``: arguments of :meth:`batches`. fairseq's model
        remains for further loads of the same kind.
        """
        start = time.perf_counter()
        self.data = self.batches("test" if kind == "decode" else "train", **load)
        sentences = sum(len(batch["id"]) for batch in self.data)
        if kind != self.kind or self.job.engine != "fairseq":
            self.kind, self.model = kind, self.new_model()
            self.run = self.runner(kind)
        clocked(self.run_all, self.job.device)
        self.setup += time.perf_counter() - start
        if self.job.device == "cuda":
            torch.cuda.empty_cache()
        return {
            "batches": len(self.data),
            "sentences": sentences,
            "setup": round(self.setup, 1),
            "setting": self.setting,
            "positions": getattr(self.model, "signature", ""),  # of our models
            "plugin": "diet_mt" in sys.modules,  # it patches fairseq
        }

    def runner(self, kind: str) -> Run:
        if kind == "decode":
            return self._ctranslate2() if self.job.engine == "ctranslate2" else self._decoding()
        return self._training() if kind == "train" else self._forward

    def run_all(self) -> None:
        for batch in self.data:
            self.run(batch)

    def turn(self) -> dict[str, Any]:
        """Seconds of all batches and, on a GPU, peak bytes; then frees the cached GPU memory."""
        if self.job.device == "cpu":
            return {"seconds": clocked(self.run_all)}
        self.run_all()  # allocates the freed memory
        torch.cuda.reset_peak_memory_stats()
        with patch.object(torch.cuda, "reset_peak_memory_stats"):  # fairseq's, at each step
            seconds = clocked(self.run_all, self.job.device)
        peak = torch.cuda.max_memory_allocated()
        torch.cuda.empty_cache()
        return {"seconds": seconds, "peak_bytes": peak}

    def batches(
        self,
        split: str,
        tokens: int | None = None,
        sentences: int | None = None,
        lengths: Sequence[tuple[int, int]] = (),
    ) -> list[Any]:
        """Batches of at most ``tokens`` and ``sentences`` on the device, equal for all systems.

        ``Job.batches`` batches of a split; or for each pair of source and target length in
        ``lengths``, a batch of random sentences with 80 to 100 % of these lengths.
        """
        if lengths:
            return [self.on_device(self._batch(tokens or 0, *pair)) for pair in lengths]
        iterator = self.task.get_batch_iterator(
            dataset=self.task.dataset(split),
            max_tokens=tokens,
            max_sentences=sentences,
            max_positions=(min(tokens or 1024, 1024),) * 2,
            ignore_invalid_inputs=True,
            disable_iterator_cache=True,
            seed=1,
        ).next_epoch_itr(shuffle=True)
        batches = list(itertools.islice(iterator, self.job.batches or None))
        if len(batches) < self.job.batches:
            raise ValueError(f"{split}: {len(batches)} batches of {tokens or sentences} "
                             f"{'tokens' if tokens else 'sentences'}, fewer than --batches "
                             f"{self.job.batches}")  # fmt: skip
        return [self.on_device(batch) for batch in batches]

    def _batch(self, tokens: int, source: int, target: int) -> Any:
        """A batch of random pairs: a multiple of 8, or one if ``tokens`` do not suffice for 8."""
        rows = tokens // max(source, target) // 8 * 8 or 1

        def ragged(longest: int, random: np.random.Generator) -> Any:
            lengths = random.integers(longest * 4 // 5, longest + 1, rows)
            lengths[0] = longest
            return lengths

        sides = (partial(ragged, longest) for longest in (source, target))
        pairs = random_pairs(self.task.source_dictionary, 0, *sides)
        return pairs.collater([pairs[row] for row in range(rows)])

    def on_device(self, batch: Any) -> Any:
        return utils.move_to_cuda(batch) if self.job.device == "cuda" else batch

    def new_model(self) -> Any:
        """The model, with the weights of the checkpoint or random ones."""
        torch.manual_seed(1)
        if self.job.checkpoint is None:
            model = self.task.build_model(self.cfg.model)
        else:
            # Allows torch's safe loader to load fairseq's options, which execute no code.
            torch.serialization.add_safe_globals([argparse.Namespace])
            load = checkpoint_utils.load_model_ensemble
            (model,), _ = load([self.job.checkpoint], task=self.task)
        common = self.cfg.common
        half = torch.float16 if common.fp16 else torch.bfloat16 if common.bf16 else None
        return model.to(device=self.job.device, dtype=half)

    def _training(self) -> Run:
        """The training step of fairseq-train."""
        criterion = self.task.build_criterion(self.cfg.criterion)
        trainer = Trainer(self.cfg, self.task, self.model, criterion)
        # By default, fairseq skips a step that runs out of memory, which would look fast.
        return lambda batch: trainer.train_step([batch], raise_oom=True)

    @torch.no_grad()
    def _forward(self, batch: Any) -> None:
        """The teacher-forced pass of evaluation."""
        self.model.eval()
        self.model(**batch["net_input"])
        self.model.train()

    def _decoding(self) -> Run:
        """Beam search by the task's generator, with the model prepared as in fairseq-generate."""
        job, model = self.job, self.model.eval()
        model.prepare_for_inference_(self.cfg)
        least, most = job.decode_length or 1, job.decode_length or LONGEST_OUTPUT
        search = Namespace(beam=job.beam, lenpen=job.lenpen)
        vars(search).update(min_len=least, max_len_a=0, max_len_b=most)
        generator = self.task.build_generator([model], search)

        def run(batch: Any) -> dict[int, list[int]]:
            sentences = self.task.inference_step(generator, [model], batch)
            best = [beams[0]["tokens"] for beams in sentences]
            words = iter(torch.cat(best).tolist())  # one transfer from the device
            tokens = [list(itertools.islice(words, len(each)))[:-1] for each in best]
            return self._numbered([batch], tokens, job.decode_length)

        return run

    def _ctranslate2(self) -> Run:
        """The same search by CTranslate2, with the fastest of several threads and batches."""
        from ctranslate2 import Translator, __version__
        from ctranslate2.converters.fairseq import set_position_encodings

        job, words, batches = self.job, self.task.target_dictionary, self.data
        special = {words.pad(), words.eos()}
        rows = (row for batch in batches for row in batch["net_input"]["src_tokens"].tolist())
        sources = [[words[token] for token in row if token not in special] for row in rows]
        # fairseq's hypotheses have decode_length tokens and an end symbol, CTranslate2's a token
        # for each of as many steps.
        steps = job.decode_length + 1 if job.decode_length else 0
        how = {"beam_size": job.beam, "length_penalty": job.lenpen}
        how |= {"max_decoding_length": steps or LONGEST_OUTPUT, "min_decoding_length": steps or 1}
        trials: dict[str, Callable[[Any], Any]] = {}
        with tempfile.TemporaryDirectory(prefix="ctranslate2-") as folder:
            spec = ctranslate2_spec(self.model, words, words)
            for side in ("encoder", "decoder"):
                rows = getattr(self.model, side).embed_positions
                set_position_encodings(getattr(spec, side).position_encodings, rows)
            save_for_ctranslate2(spec, folder)
            for inter, intra in sorted({(1, job.threads), (job.threads, 1)}):
                threads = {"inter_threads": inter, "intra_threads": intra}
                translator = Translator(folder, "cpu", compute_type=job.compute_type, **threads)
                translator.translate_batch(sources[: 4 * inter], max_decoding_length=1)
                for kind, size in _BATCHES:
                    name = f"inter_threads {inter}, intra_threads {intra}, max_batch_size {size}"
                    layout = {"batch_type": kind, "max_batch_size": size}
                    trials[f"{name} {kind}"] = partial(translator.translate_batch, **how, **layout)
        sample = sources[:: -(-len(sources) // _TRIAL_SENTENCES)]
        seconds = {
            name: min(clocked(partial(trial, sample)) for _ in range(2))
            for name, trial in trials.items()
        }
        fastest = min(seconds, key=lambda name: seconds[name])
        self.setting = f"{__version__}: {fastest}"

        def run(batches: list[Any]) -> dict[int, list[int]]:
            best = (result.hypotheses[0] for result in trials[fastest](sources))
            tokens = [[words.index(word) for word in hypothesis] for hypothesis in best]
            return self._numbered(batches, tokens, steps)

        self.data = [batches]  # CTranslate2 forms its own batches
        return run

    @staticmethod
    def _numbered(batches: list[Any], tokens: list[list[int]], length: int) -> dict[int, list[int]]:
        """Sentence number -> tokens of the best hypothesis; all of ``length``, unless it is 0."""
        if length and {len(each) for each in tokens} != {length}:
            raise AssertionError(f"hypotheses of other lengths than {length} tokens")
        numbers = (number for batch in batches for number in batch["id"].tolist())
        return dict(zip(numbers, tokens, strict=True))

    def outputs(self) -> dict[int, list[int]]:
        """Sentence number -> tokens of the best hypothesis, without end-of-sentence symbol."""
        return {n: tokens for batch in self.data for n, tokens in self.run(batch).items()}

    def peak(self, kind: str, tokens: int) -> dict[str, Any]:
        """Peak bytes of a pass beyond model and optimizer, and its seconds (Linux, from /proc)."""
        both = (self._batch(length, length, length) for length in (_WARMUP_TOKENS, tokens))
        warmup, batch = map(self.on_device, both)
        self.model = self.new_model()
        run = self.runner(kind)
        run(warmup)  # allocates persistent memory: Adam's moments, buffers of kernels
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets VmHWM
        before = _memory("VmRSS")
        seconds = clocked(partial(run, batch))
        return {"peak_bytes": _memory("VmHWM") - before, "seconds": round(seconds, 3)}


def _as_multi30k(random: np.random.Generator) -> Any:
    drawn = random.normal(_MEAN, _DEVIATION, _SENTENCES).round().astype(int)
    return drawn.clip(_SHORTEST, _LONGEST)


def random_pairs(words: Dictionary, seed: int, *lengths: Lengths) -> LanguagePairDataset:
    """Random sentence pairs. ``lengths``: functions that draw those of sources and of targets."""
    random = np.random.default_rng(seed)
    sides: list[Any] = []
    for draw in lengths or (_as_multi30k, _as_multi30k):
        drawn = draw(random)
        sentences = [
            torch.from_numpy(random.integers(words.nspecial, len(words), size)) for size in drawn
        ]
        for sentence in sentences:
            sentence[-1] = words.eos()
        sides += [sentences, drawn, words]
    return LanguagePairDataset(*sides)


def ctranslate2_spec(
    model: Any, source: Dictionary, target: Dictionary, options: Sequence[dict[str, Any]] = ({}, {})
) -> Any:
    """CTranslate2's specification of one of fairseq's Transformers, without positions.

    CTranslate2's own converter reads checkpoints differently from the installed fairseq.
    ``options``: further arguments of the specifications of encoder and decoder.
    """
    from ctranslate2.converters import fairseq
    from ctranslate2.specs import common_spec, transformer_spec

    stacks = model.eval().requires_grad_(False).encoder, model.decoder
    kinds = transformer_spec.TransformerEncoderSpec, transformer_spec.TransformerDecoderSpec
    fills = fairseq.set_transformer_encoder_layer, fairseq.set_transformer_decoder_layer
    specs = []
    for kind, fill, stack, more in zip(kinds, fills, stacks, options, strict=True):
        layers = list(stack.layers.children())
        spec = kind(
            len(layers),
            layers[0].self_attn.num_heads,
            pre_norm=layers[0].normalize_before,
            no_final_norm=stack.layer_norm is None,
            activation=common_spec.Activation[ACTIVATIONS[stack.cfg.activation_fn]],
            layernorm_embedding=stack.layernorm_embedding is not None,
            **more,
        )
        for layer, module in zip(spec.layer, layers, strict=True):
            fill(layer, module)
        for name in ("layer_norm", "layernorm_embedding"):
            if getattr(stack, name) is not None:
                fairseq.set_layer_norm(getattr(spec, name), getattr(stack, name))
        table = spec.embeddings[0] if isinstance(spec.embeddings, list) else spec.embeddings
        # The output of the module, which may be wider than its weight.
        table.weight = stack.embed_tokens(torch.arange(len(stack.embed_tokens.weight))).numpy()
        spec.scale_embeddings = stack.embed_scale
        specs.append(spec)
    output = model.decoder.output_projection.weight
    if model.decoder.project_out_dim is not None:  # merges both projections
        output = output @ model.decoder.project_out_dim.weight
    specs[1].projection.weight = output.numpy()
    spec = transformer_spec.TransformerSpec(*specs)
    sides = (spec.register_source_vocabulary, source), (spec.register_target_vocabulary, target)
    for register, words in sides:
        register(["<blank>" if word == "<pad>" else word for word in words.symbols])
    # In fairseq, translations start with the end-of-sentence symbol, and sources end with it.
    spec.config.decoder_start_token = spec.config.eos_token
    spec.config.add_source_eos = True
    return spec


def save_for_ctranslate2(spec: Any, folder: str) -> None:
    """Validates, optimizes and writes a specification that includes positions."""
    spec.validate()
    spec.optimize()
    spec.save(folder)


def clocked(work: Callable[[], object], device: str = "cpu") -> float:
    """Seconds of ``work``, including the execution of its kernels on a GPU."""
    settle = torch.cuda.synchronize if device == "cuda" else lambda: None
    settle()
    start = time.perf_counter()
    work()
    settle()
    return time.perf_counter() - start


def _memory(field: str) -> int:
    """Bytes of this process: ``VmRSS`` now, ``VmHWM`` at the peak."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition(f"{field}:")[2].split()[0]) * 1024


def main() -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of fairseq and its extensions goes to stderr
    for name in ("fairseq", "hydra"):
        logging.getLogger(name).setLevel(logging.WARNING)
    warnings.filterwarnings("ignore")
    job = Job(**json.loads(sys.stdin.readline()))
    torch.set_num_threads(job.threads)
    system = System(job)
    for line in iter(sys.stdin.readline, ""):
        method, given = json.loads(line)
        print(json.dumps(getattr(system, method)(**given)), file=out, flush=True)


if __name__ == "__main__":
    main()
