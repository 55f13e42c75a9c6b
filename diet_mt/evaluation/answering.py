"""Runs a model of ``extractive_qa`` over a set of questions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import utils

from ..bert.questions.decoding import N_BEST, Candidate, candidates_of, no_answer
from ..bert.questions.predictions import Predictions
from ..errors import UserError
from ..tasks._question_sets import QuestionSet
from .fine_tuned import load_fine_tuned

TASK = "extractive_qa"


@dataclass(frozen=True)
class Answerer:
    """A fine-tuned model with its task."""

    model: Any
    task: Any


@dataclass(frozen=True)
class Decoding:
    """How answers are made of logits."""

    max_answer: int  # pieces
    count: int = N_BEST  # answers to list for each question
    threshold: float = 0.0  # of the odds of no answer, where questions can be impossible


def load_answerer(checkpoint: Path, data: Path) -> Answerer:
    """``data``: the folder made by data-prep/prepare-qa.sh, for its dictionary.

    Raises:
        UserError: the checkpoint cannot be read, is of another task, or of another dictionary.
    """
    model, _, task = load_fine_tuned(checkpoint, data, TASK)
    return Answerer(model, task)


def answer(
    answerer: Answerer, group: QuestionSet, dataset: Any, how: Decoding, batch_size: int
) -> Predictions:
    """Predictions for all questions of a set; ``dataset``: its windows.

    Raises:
        UserError: the model gives numbers that are not finite.
    """
    found: dict[int, list[Candidate]] = {n: [] for n in range(len(group.questions))}
    nothing: dict[int, Candidate] = {}
    batches = answerer.task.get_batch_iterator(
        dataset=dataset, max_sentences=batch_size, required_batch_size_multiple=1
    ).next_epoch_itr(shuffle=False)
    for batch in batches:
        sample = utils.move_to_cuda(batch) if torch.cuda.is_available() else batch
        with torch.no_grad():
            logits = answerer.model(**sample["net_input"], use_span_head=True)[0].float()
        rows = logits.cpu().numpy()
        for row, number in zip(rows, sample["window"].tolist(), strict=True):
            window = number - group.first
            start, end = _logits(row, group, window)
            extents = np.asarray(group.features.extents[group.features.slice_of(window)])
            context = int(group.features.column("context")[window])
            question = group.question_of(window)
            found[question] += candidates_of(
                start, end, extents, context, how.max_answer, how.count
            )
            none = no_answer(start, end)
            # Of all windows the one that is least sure that there is no answer.
            nothing[question] = min(none, nothing.get(question, none), key=lambda each: each.score)
    predictions = Predictions()
    for number, asked in enumerate(group.questions):
        none_here = nothing[number] if group.is_version_2 else None
        predictions.add(asked, found[number], none_here, how.threshold, how.count)
    return predictions


def _logits(row: np.ndarray, group: QuestionSet, window: int) -> tuple[np.ndarray, np.ndarray]:
    """(S, 2), padded -> logits of the begin and of the end, (S',) each, of a window's tokens."""
    length = int(group.features.column("tokens")[window])
    start, end = np.ascontiguousarray(row[:length].T)
    if not (np.isfinite(start).all() and np.isfinite(end).all()):
        name = group.questions[group.question_of(window)].id
        raise UserError(f"question {name}: logits are not finite; the training has diverged")
    return start, end
