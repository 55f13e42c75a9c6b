"""What the benchmark times: the same work for fairseq's own Transformer and for each of ours."""

from __future__ import annotations

import itertools
import warnings
from abc import ABC, abstractmethod
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import checkpoint_utils, optim, options, tasks, utils
from fairseq.data import Dictionary, LanguagePairDataset
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks.translation import TranslationTask
from torch import nn

from ..errors import UserError
from ..models._architectures import SIZES
from ..positions import NAMES

STOCK = "stock"  # fairseq's transformer
SYSTEMS = (STOCK, *(name.replace("-", "_") for name in NAMES))

# Made-up sentences: as many subwords as Multi30k has in a sentence, the end mark among them.
_MEAN_LENGTH, _DEVIATION, _SHORTEST, _LONGEST = 15.0, 5.0, 5, 40
_SENTENCES = 4000


@dataclass(frozen=True)
class Settings:
    """What all systems have in common. Tokens are counted as fairseq does, padding included."""

    size: str
    data: Path | None  # folder made by fairseq-preprocess; None for made-up sentences
    vocabulary: int  # entries, of made-up sentences
    train_tokens: int  # at most, in a batch of a training step and of the forward pass
    decode_tokens: int  # at most, of the source, in a batch of decoding
    batches: int  # in one turn of a system
    decode_length: int  # tokens of every hypothesis; 0: the model decides
    dropout: float
    beam: int
    lenpen: float
    half: bool
    device: str
    options: tuple[str, ...]  # further ones of fairseq-train, for all systems


def configuration(system: str, settings: Settings) -> Any:
    """fairseq's configuration of a training, from the command line that a user would give."""
    words = [str(settings.data or "made-up"), "--arch"]
    if system == STOCK:
        words.append("transformer")
        for name, value in SIZES[settings.size].items():
            if name != "dropout":
                flag = name.replace("_", "-")
                words += [f"--encoder-{flag}", str(value), f"--decoder-{flag}", str(value)]
    else:
        words.append(f"{system}_{settings.size}")
    words += ["--share-all-embeddings", "--dropout", str(settings.dropout)]
    words += ["--optimizer", "adam", "--adam-betas", "(0.9, 0.98)", "--lr", "0.0001"]
    words += ["--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1"]
    words += ["--max-tokens", str(settings.train_tokens)]
    words += ["--fp16"] if settings.half else []
    words += settings.options
    args = options.parse_args_and_arch(options.get_training_parser(), words)
    with warnings.catch_warnings():
        # hydra tells fairseq that its ways are old.
        warnings.simplefilter("ignore")
        return convert_namespace_to_omegaconf(args)


def make_task(cfg: Any, settings: Settings) -> Any:
    """The translation task with its training and test sets, real or made up."""
    if settings.data is not None:
        if not (settings.data / "preprocess.log").is_file():
            raise UserError(f"{settings.data} holds no data made by fairseq-preprocess")
        task = tasks.setup_task(cfg.task)
        for split in ("train", "test"):
            task.load_dataset(split)
        return task
    words = Dictionary()
    for number in range(settings.vocabulary - len(words)):
        words.add_symbol(f"word{number}")
    task = TranslationTask(cfg.task, words, words)
    for seed, split in enumerate(("train", "test")):
        task.datasets[split] = _made_up(words, seed)
    return task


def _made_up(words: Dictionary, seed: int) -> LanguagePairDataset:
    random = np.random.default_rng(seed)
    sides = []
    for _ in range(2):
        lengths = random.normal(_MEAN_LENGTH, _DEVIATION, _SENTENCES).round().astype(int)
        sentences = [
            torch.from_numpy(random.integers(words.nspecial, len(words), length))
            for length in lengths.clip(_SHORTEST, _LONGEST)
        ]
        for sentence in sentences:
            sentence[-1] = words.eos()
        sides.append((sentences, np.array([len(sentence) for sentence in sentences])))
    (source, source_sizes), (target, target_sizes) = sides
    return LanguagePairDataset(source, source_sizes, words, target, target_sizes, words)


def batches(task: Any, split: str, tokens: int, settings: Settings) -> list[Any]:
    """``settings.batches`` batches of a data set, on the device, the same at every call.

    Raises UserError if the data set has not so many.
    """
    iterator = task.get_batch_iterator(
        dataset=task.dataset(split),
        max_tokens=tokens,
        max_positions=(min(tokens, 1024),) * 2,
        ignore_invalid_inputs=True,
        required_batch_size_multiple=1,
        seed=1,
    ).next_epoch_itr(shuffle=True)
    found = list(itertools.islice(iterator, settings.batches))
    if len(found) < settings.batches:
        raise UserError(
            f"{split}: only {len(found)} batches of at most {tokens} tokens; take fewer --batches "
            "or other tokens"
        )
    return [_on_device(batch, settings) for batch in found]


def _on_device(batch: Any, settings: Settings) -> Any:
    return utils.move_to_cuda(batch) if settings.device == "cuda" else batch


def make_model(cfg: Any, task: Any, settings: Settings, checkpoint: Path | None) -> nn.Module:
    """A model with random weights, the same at every call, or with those of ``checkpoint``."""
    torch.manual_seed(1)
    if checkpoint is None:
        model = task.build_model(cfg.model)
    else:
        if not checkpoint.is_file():
            raise UserError(f"{checkpoint}: no such checkpoint")
        models, _ = checkpoint_utils.load_model_ensemble([str(checkpoint)], task=task)
        model = models[0]
    model = model.half() if settings.half else model
    return model.to(settings.device)


class Case(ABC):
    """One measure of one system. A call is one turn: every batch once."""

    def __init__(self, task: Any, model: nn.Module, data: list[Any]) -> None:
        self.task, self.model, self.data = task, model, data

    def __call__(self) -> None:
        for batch in self.data:
            self.run(batch)

    @abstractmethod
    def run(self, batch: Any) -> None:
        """The work on one batch."""

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
    """fairseq's beam search, as fairseq-generate sets it up."""

    def __init__(
        self, cfg: Any, task: Any, model: nn.Module, data: list[Any], settings: Settings
    ) -> None:
        super().__init__(task, model, data)
        model.eval()
        model.prepare_for_inference_(cfg)  # type: ignore[operator]
        self.length = settings.decode_length
        self.generator = task.build_generator(
            [model],
            Namespace(
                beam=settings.beam,
                lenpen=settings.lenpen,
                max_len_a=0,
                max_len_b=self.length or 200,
                min_len=self.length or 1,
            ),
        )

    def run(self, batch: Any) -> None:
        sentences = self.task.inference_step(self.generator, [self.model], batch)
        lengths = {len(hypothesis["tokens"]) for beams in sentences for hypothesis in beams}
        # A system that writes less would look fast.
        if self.length and lengths != {self.length + 1}:
            raise AssertionError(f"hypotheses of {sorted(lengths)} tokens, not {self.length + 1}")


def systems(
    names: list[str], settings: Settings, checkpoints: dict[str, Path]
) -> Iterator[tuple[str, dict[str, Case]]]:
    """For each system its cases: ``train``, ``forward`` and ``decode``."""
    task = None
    for name in names:
        cfg = configuration(name, settings)
        if task is None:
            task = make_task(cfg, settings)
            training = batches(task, "train", settings.train_tokens, settings)
            decoding = batches(task, "test", settings.decode_tokens, settings)

        def model(cfg: Any = cfg, name: str = name, task: Any = task) -> nn.Module:
            return make_model(cfg, task, settings, checkpoints.get(name))

        trained = model()
        yield (
            name,
            {
                "train": TrainingStep(cfg, task, trained, training),
                "forward": Forward(task, trained, training),
                # A model of its own: fairseq forbids training after prepare_for_inference_.
                "decode": Decoding(cfg, task, model(), decoding, settings),
            },
        )
