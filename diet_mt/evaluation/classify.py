"""Runs a fine-tuned checkpoint of ``diet_sentence_prediction`` over one split of its data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import utils

from ..criterions.diet_sentence_prediction import predictions_of
from ..errors import UserError
from .fine_tuned import load_fine_tuned

TASK = "diet_sentence_prediction"


@dataclass(frozen=True)
class Classifier:
    """A fine-tuned model with fairseq's task and the configuration of its training."""

    model: Any
    task: Any
    cfg: Any

    @property
    def regression(self) -> bool:
        return bool(self.task.cfg.regression_target)

    def names(self, numbers: np.ndarray) -> list[str]:
        """Predictions or true values (N,) as text: names of classes, or scores."""
        if self.regression:
            return [f"{score:.4f}" for score in numbers.tolist()]
        labels = self.task.label_dictionary
        return [str(labels[labels.nspecial + int(number)]) for number in numbers.tolist()]


@dataclass(frozen=True)
class Predictions:
    """``predicted`` (N,) and, where they are known, ``gold`` (N,), in the order of the data:
    numbers of classes, or scores.
    """

    predicted: np.ndarray
    gold: np.ndarray | None


def load_classifier(checkpoint: Path, data: Path) -> Classifier:
    """Raises UserError where the checkpoint cannot be read, or is of another task."""
    if not (data / "input0" / "dict.txt").is_file():
        raise UserError(
            f"{data}: no input0/dict.txt; give a folder made by data-prep/prepare-glue.sh"
        )
    model, cfg, task = load_fine_tuned(checkpoint, data, TASK)
    return Classifier(model, task, cfg)


def predict(classifier: Classifier, split: str, batch_size: int = 64) -> Predictions:
    """Runs the model over a split. Raises UserError where the data do not have it, or the model
    gives numbers that are not finite.
    """
    task = classifier.task
    if not (Path(task.cfg.data) / "input0" / f"{split}.idx").is_file():
        raise UserError(f"{task.cfg.data}: no split '{split}'")
    dataset = task.load_dataset(split)
    batches = task.get_batch_iterator(
        dataset=dataset, max_sentences=batch_size, required_batch_size_multiple=1
    ).next_epoch_itr(shuffle=False)
    places, predicted, gold = [], [], []
    for batch in batches:
        sample = utils.move_to_cuda(batch) if torch.cuda.is_available() else batch
        with torch.no_grad():
            logits, _ = classifier.model(
                **sample["net_input"],
                features_only=True,
                classification_head_name=task.cfg.classification_head_name,
            )
        best = predictions_of(logits, classifier.regression)
        if not best.isfinite().all():
            raise UserError(f"{split}: logits are not finite; the training has diverged")
        places.append(sample["id"].cpu().numpy())
        predicted.append(best.cpu().numpy())
        if "target" in sample:
            gold.append(sample["target"].view(-1).double().cpu().numpy())
    order = np.argsort(np.concatenate(places))
    if len(order) != len(dataset):
        raise UserError(f"{task.cfg.data}: {split}: {len(order)} of {len(dataset)} predicted")
    return Predictions(
        np.concatenate(predicted)[order], np.concatenate(gold)[order] if gold else None
    )
