"""What is measured: the same work for stock fairseq, for ours and for other programs."""

from __future__ import annotations

import argparse
import importlib
import itertools
import warnings
from abc import ABC, abstractmethod
from argparse import Namespace
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import checkpoint_utils, optim, options, tasks, utils
from fairseq.data import Dictionary, LanguagePairDataset
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks.translation import TranslationTask
from torch import nn

# Made-up sentences: as many subwords as Multi30k has in a sentence, the end mark among them.
_MEAN_LENGTH, _DEVIATION, _SHORTEST, _LONGEST = 15.0, 5.0, 5, 40
_SENTENCES = 4000


@dataclass(frozen=True)
class Job:
    """One system and what it has in common with the others.

    Tokens are counted as fairseq does, padding included.
    """

    words: list[str]  # options of fairseq-train that make the system's model
    user_dir: str | None  # None: fairseq without plugins
    engine: str  # what decodes: fairseq or ctranslate2
    threads: int
    vocabulary: int  # entries, of made-up sentences
    checkpoint: str | None = None  # None: random weights, the same for the same words
    constants: dict[str, int] = field(default_factory=dict)  # module:name -> its value here
    device: str = "cpu"
    half: bool = False
    data: str | None = None  # folder made by fairseq-preprocess; None for made-up sentences
    length: int = 0  # tokens on either side, of one made-up pair; 0: many sentences
    # Of many sentences, and of decoding.
    train_tokens: int = 0  # at most, in a batch of a training step and of the forward pass
    decode_tokens: int = 0  # at most, of the source, in a batch of decoding
    batches: int = 0  # in one turn; 0: the whole data set
    decode_length: int = 0  # tokens of every hypothesis; 0: the model decides
    beam: int = 1
    lenpen: float = 1.0


def configuration(words: list[str]) -> Any:
    """fairseq's configuration of a training, from the command line that a user would give."""
    args = options.parse_args_and_arch(options.get_training_parser(), words)
    with warnings.catch_warnings():
        # hydra tells fairseq that its ways are old.
        warnings.simplefilter("ignore")
        return convert_namespace_to_omegaconf(args)


def make_task(cfg: Any, job: Job) -> Any:
    """The translation task with its training and test sets, real or made up.

    Raises ValueError if the folder was not made by fairseq-preprocess.
    """
    if job.data is not None:
        if not (Path(job.data) / "preprocess.log").is_file():
            raise ValueError(f"{job.data} holds no data made by fairseq-preprocess")
        task = tasks.setup_task(cfg.task)
        for split in ("train", "test"):
            task.load_dataset(split)
        return task
    words = Dictionary()
    for number in range(job.vocabulary - len(words)):
        words.add_symbol(f"word{number}")
    task = TranslationTask(cfg.task, words, words)
    for seed, split in enumerate(("train", "test")):
        task.datasets[split] = made_up(words, seed)
    return task


def made_up(words: Dictionary, seed: int, length: int = 0) -> LanguagePairDataset:
    """Random sentence pairs; with ``length`` a single one, of as many tokens on either side."""
    random = np.random.default_rng(seed)
    sides = []
    for _ in range(2):
        drawn = random.normal(_MEAN_LENGTH, _DEVIATION, _SENTENCES).round().astype(int)
        lengths = np.array([length]) if length else drawn.clip(_SHORTEST, _LONGEST)
        sentences = [
            torch.from_numpy(random.integers(words.nspecial, len(words), size)) for size in lengths
        ]
        for sentence in sentences:
            sentence[-1] = words.eos()
        sides.append((sentences, lengths))
    (source, source_sizes), (target, target_sizes) = sides
    return LanguagePairDataset(source, source_sizes, words, target, target_sizes, words)


class Case(ABC):
    """One measure of one system. A call is one turn: every batch once."""

    setting = ""  # what the system itself chose, for the record

    def __init__(self, task: Any, model: nn.Module, data: list[Any]) -> None:
        self.task, self.model, self.data = task, model, data

    def __call__(self) -> None:
        for batch in self.data:
            self.run(batch)

    @abstractmethod
    def run(self, batch: Any) -> Any:
        """The work on one batch."""

    def outputs(self) -> dict[int, list[int]]:
        """Number of a sentence in its data set -> tokens of its best hypothesis, no end mark."""
        raise NotImplementedError

    @property
    def sentences(self) -> int:
        """In one turn."""
        return sum(int(batch["id"].numel()) for batch in self.data)


class TrainingStep(Case):
    """Forward pass, label-smoothed cross-entropy, backward pass, gradient norm and Adam."""

    def __init__(self, cfg: Any, task: Any, model: nn.Module, data: list[Any]) -> None:
        super().__init__(task, model, data)
        self.criterion = task.build_criterion(cfg.criterion)
        parameters = [value for value in model.parameters() if value.requires_grad]
        if cfg.common.fp16:
            self.optimizer = optim.FP16Optimizer.build_optimizer(cfg, parameters)
        else:
            self.optimizer = optim.build_optimizer(cfg.optimizer, parameters)

    def run(self, batch: Any) -> None:
        _, tokens, _ = self.task.train_step(batch, self.model, self.criterion, self.optimizer, 0)
        try:
            self.optimizer.multiply_grads(1.0 / tokens)
            self.optimizer.clip_grad_norm(0.0)
            self.optimizer.step()
        except OverflowError:
            pass  # of half precision: the loss scale shrinks, and fairseq skips the update too
        self.optimizer.zero_grad()


class Forward(Case):
    """The teacher-forced pass of evaluation, without gradients."""

    @torch.no_grad()
    def run(self, batch: Any) -> None:
        self.model.eval()
        self.model(**batch["net_input"])
        self.model.train()


class Decoding(Case):
    """Beam search with the generator that the task builds, as fairseq-generate sets it up."""

    def __init__(self, cfg: Any, task: Any, model: nn.Module, data: list[Any], job: Job) -> None:
        super().__init__(task, model, data)
        model.eval()
        model.prepare_for_inference_(cfg)  # type: ignore[operator]
        self.length = job.decode_length
        self.generator = task.build_generator(
            [model],
            Namespace(
                beam=job.beam,
                lenpen=job.lenpen,
                max_len_a=0,
                max_len_b=self.length or LONGEST_OUTPUT,
                min_len=self.length or 1,
            ),
        )

    def run(self, batch: Any) -> Any:
        sentences = self.task.inference_step(self.generator, [self.model], batch)
        lengths = {len(hypothesis["tokens"]) for beams in sentences for hypothesis in beams}
        # A system that writes less would look fast.
        if self.length and lengths != {self.length + 1}:
            raise AssertionError(f"hypotheses of {sorted(lengths)} tokens, not {self.length + 1}")
        return sentences

    def outputs(self) -> dict[int, list[int]]:
        found = {}
        for batch in self.data:
            for number, beams in zip(batch["id"].tolist(), self.run(batch), strict=True):
                found[number] = beams[0]["tokens"].tolist()[:-1]
        return found


LONGEST_OUTPUT = 200  # tokens of a hypothesis where the model decides; fairseq-generate's default


class Workload:
    """Builds the cases of one system."""

    def __init__(self, job: Job) -> None:
        # fairseq's own loader, as for a user who gives --user-dir.
        utils.import_user_module(Namespace(user_dir=job.user_dir))
        for place, value in job.constants.items():
            module, _, name = place.partition(":")
            setattr(importlib.import_module(module), name, value)
        self.job = job
        self.cfg = configuration(job.words)
        self.task = make_task(self.cfg, job)

    def case(self, kind: str) -> Case:
        """``train``, ``forward`` or ``decode``, with a model of its own.

        Raises ValueError if the data set has too few batches.
        """
        split, tokens = ("test", self.job.decode_tokens) if kind == "decode" else ("train", None)
        data = self.batches(split, tokens or self.job.train_tokens)
        if kind == "train":
            return TrainingStep(self.cfg, self.task, self.model(), data)
        if kind == "forward":
            return Forward(self.task, self.model(), data)
        if self.job.engine == "fairseq":
            return Decoding(self.cfg, self.task, self.model(), data, self.job)
        from .ctranslate2_decoding import CTranslate2Decoding

        return CTranslate2Decoding(self.task, self.model(), data, self.job)

    def batches(self, split: str, tokens: int) -> list[Any]:
        """``Job.batches`` batches of a data set, on the device, the same for all systems."""
        iterator = self.task.get_batch_iterator(
            dataset=self.task.dataset(split),
            max_tokens=tokens,
            max_positions=(min(tokens, 1024),) * 2,
            ignore_invalid_inputs=True,
            seed=1,
        ).next_epoch_itr(shuffle=True)
        found = list(itertools.islice(iterator, self.job.batches or None))
        if len(found) < self.job.batches:
            raise ValueError(
                f"{split}: only {len(found)} batches of at most {tokens} tokens; take fewer "
                "--batches or other tokens"
            )
        return [self.on_device(batch) for batch in found]

    def pair(self, length: int) -> Any:
        """A batch of one made-up sentence pair, ``length`` tokens on either side."""
        dataset = made_up(self.task.source_dictionary, 0, length)
        return self.on_device(dataset.collater([dataset[0]]))

    def on_device(self, batch: Any) -> Any:
        return utils.move_to_cuda(batch) if self.job.device == "cuda" else batch

    def model(self) -> nn.Module:
        """With the weights of the checkpoint, or random ones.

        Raises ValueError if the file is missing.
        """
        torch.manual_seed(1)
        if self.job.checkpoint is None:
            model = self.task.build_model(self.cfg.model)
        else:
            if not Path(self.job.checkpoint).is_file():
                raise ValueError(f"{self.job.checkpoint}: no such checkpoint")
            # torch's safe loader has to be told of fairseq's options; they run no code.
            torch.serialization.add_safe_globals([argparse.Namespace])
            models, _ = checkpoint_utils.load_model_ensemble([self.job.checkpoint], task=self.task)
            model = models[0]
        model = model.half() if self.job.half else model
        return model.to(self.job.device)
