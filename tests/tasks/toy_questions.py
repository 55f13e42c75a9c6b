"""Prepared questions, the task that reads them and a model that can learn to answer them."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from fairseq.criterions.fairseq_criterion import FairseqCriterion
from torch import Tensor

from diet_mt.bert.qa import prepare
from diet_mt.bert.windows import WindowSizes
from diet_mt.criterions.extractive_qa import ExtractiveQACriterion
from diet_mt.models.diet_roberta import DietRobertaModel
from diet_mt.tasks.extractive_qa import ExtractiveQAConfig, ExtractiveQATask

from ..bert.made import coloured, write_vocabulary

# Several windows for a question.
SIZES = WindowSizes(max_tokens=48, stride=16, max_question=20)
MODEL: dict[str, Any] = {
    "encoder_layers": 1,
    "encoder_embed_dim": 32,
    "encoder_ffn_embed_dim": 48,
    "encoder_attention_heads": 2,
    "max_source_positions": 50,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "position_encoding": "diet-rel",
    "segment_encoding": "per-head",
}


def write_questions(folder: Path, train: int = 160, valid: int = 25) -> Path:
    """A folder as data-prep/prepare-qa.sh makes it: train, valid and test_xquad_en."""
    write_vocabulary(folder)
    for seed, (split, count) in enumerate(
        (("train", train), ("valid", valid), ("test_xquad_en", 12)), start=1
    ):
        file = coloured(folder / f"{split}.json", count, seed)
        prepare(file, folder, folder / split, SIZES, language="en")
    return folder


def make_task(folder: Path, **options: Any) -> ExtractiveQATask:
    given = {"data": str(folder), "max_positions": 50, "seed": 1, **options}
    return ExtractiveQATask.setup_task(ExtractiveQAConfig(**given))


def make_model(task: ExtractiveQATask, **options: Any) -> DietRobertaModel:
    torch.manual_seed(1)
    model = DietRobertaModel.build_model(Namespace(**{**MODEL, **options}), task)
    model.register_span_head()
    return model


def make_criterion(task: ExtractiveQATask) -> FairseqCriterion:
    return ExtractiveQACriterion(task)


def batches(task: ExtractiveQATask, split: str, size: int) -> list[Any]:
    dataset = task.load_dataset(split)
    iterator = task.get_batch_iterator(dataset, max_sentences=size, seed=1)
    return list(iterator.next_epoch_itr(shuffle=False))


def learn(task: ExtractiveQATask, model: DietRobertaModel) -> list[float]:
    """Trains until all is learned, whatever the seed and a processor's rounding (three seeds);
    returns the loss of each update, for one window, in nats.
    """
    criterion = make_criterion(task)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    losses = []
    model.train()
    for _ in range(12):
        for sample in batches(task, "train", 32):
            optimizer.zero_grad()
            loss, windows, _ = criterion(model, sample)
            mean: Tensor = loss / windows
            mean.backward()
            optimizer.step()
            losses.append(mean.item())
    return losses
