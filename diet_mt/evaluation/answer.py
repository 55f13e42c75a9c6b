"""Answers to questions with a fine-tuned checkpoint of ``extractive_qa``."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from ..bert.answer_scores import score, scoring_of
from ..bert.answers import AnswerPredictions, Candidate, candidates_of, no_answer
from ..bert.qa import prepare
from ..bert.squad import NAMES
from ..bert.windows import read_about
from ..system.errors import UserError
from ..tasks.extractive_qa import QuestionSet
from .options import portable_file
from .predict import FineTuned, batches_of, load_fine_tuned, new_splits
from .records import TaskResult, put_row
from .requests import AnswerRequest

SQUAD = "SQuAD"
TASK = "extractive_qa"


def answer_sets(request: AnswerRequest, splits: list[str]) -> None:
    """Answers and scores each split without answers and a row of the checkpoint, or the file."""
    if request.file:
        splits = [""]
    elif all((request.out / each).is_dir() for each in splits):
        splits = new_splits(request, {each: request.task or task_of(each) for each in splits})
    if not splits:
        return
    loaded = load_fine_tuned(request, TASK)
    for split in splits:
        print(_answer_set(request, loaded, split), flush=True)


def _answer_set(request: AnswerRequest, loaded: FineTuned, split: str) -> str:
    """``split``: empty for the file."""
    request = replace(request, max_answer=request.max_answer or loaded.task.cfg.max_answer)
    with _folder_of(request, split) as folder:
        group = loaded.task.question_set(split or "file", folder)
        predictions = answer(request, loaded, group)
        metrics = metrics_of(group, predictions)
    if request.results and not metrics:
        raise UserError(f"{group.about.name}: no gold answers; leave --results out")
    predictions.write(request.out / split)
    words = [" ".join(f"{name} {value:.4f}" for name, value in metrics.items())] if metrics else []
    task, about = request.task or task_of(split), group.about
    name = split or about.name
    if request.results:
        train = read_about(request.data / "train")
        result = TaskResult(
            task=task,
            split=name,
            language=about.language,
            metrics=metrics,
            main_metric="f1",
            evaluation=request.command(split, name),
            examples=about.questions,
            train_examples=train.questions,
            predictions=portable_file(request.out / split / "predictions.json"),
            notes=[
                f"trained on {train.name}",
                f"tested on {about.name}",
                f"scored as {about.scoring}",
            ],
            **loaded.facts,
        )
        words.append(f"-> {put_row(request.results, result)}")
    return "\t".join([task, name, f"{len(predictions.texts)} questions", *words])


def answer(request: AnswerRequest, loaded: FineTuned, group: QuestionSet) -> AnswerPredictions:
    """Predicted answers to all questions of a set."""
    assert request.max_answer is not None
    candidates: dict[int, list[Candidate]] = {n: [] for n in range(len(group.questions))}
    nothing: dict[int, Candidate] = {}
    windows = loaded.task.windows_of(group)
    for sample in batches_of(loaded.task, windows, request.batch_size):
        with torch.no_grad():
            logits = loaded.model(**sample["net_input"], use_span_head=True)[0].float()
        rows = logits.cpu().numpy()
        for row, number in zip(rows, sample["window"].tolist(), strict=True):
            window = number - group.first
            start, end = _logits(row, group, window)
            context = int(group.features.column("context")[window])
            question = group.question_of(window)
            candidates[question] += candidates_of(
                start,
                end,
                loaded.task.extents_of(number),
                context,
                request.max_answer,
                request.n_best,
            )
            none = no_answer(start, end)
            # Of all windows the one that is least sure that there is no answer.
            nothing[question] = min(none, nothing.get(question, none), key=lambda each: each.score)
    predictions = AnswerPredictions()
    for number, each in enumerate(group.questions):
        none_here = nothing[number] if group.is_version_2 else None
        predictions.add(each, candidates[number], none_here, request.threshold, request.n_best)
    return predictions


def _logits(row: np.ndarray, group: QuestionSet, window: int) -> tuple[np.ndarray, np.ndarray]:
    """(S, 2), padded -> logits of the start and of the end, (S',) each, of a window's tokens."""
    length = int(group.features.column("tokens")[window])
    start, end = np.ascontiguousarray(row[:length].T)
    if not (np.isfinite(start).all() and np.isfinite(end).all()):
        name = group.questions[group.question_of(window)].id
        raise UserError(f"question {name}: logits are not finite; the training has diverged")
    return start, end


@contextmanager
def _folder_of(request: AnswerRequest, split: str) -> Iterator[Path]:
    """The folder of the prepared questions; one of a file exists for as long as it is needed."""
    if request.file is None:
        yield request.data / split
        return
    sizes = read_about(request.data / "train").sizes
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "questions"
        language, scoring = request.language, request.scoring
        prepare(request.file, request.data, folder, sizes, language=language, scoring=scoring)
        yield folder


def task_of(split: str) -> str:
    """``test_xquad_de`` -> ``XQuAD``; ``valid`` -> ``SQuAD``."""
    collection = split.split("_")[1] if split.count("_") > 1 else ""
    return NAMES.get(collection, collection) if collection else SQUAD


def metrics_of(group: QuestionSet, predictions: AnswerPredictions) -> dict[str, float]:
    """Scores from 0 to 100; empty without gold answers."""
    if not all(each.has_gold for each in group.questions):
        return {}
    scoring = scoring_of(group.about.scoring, group.about.language, group.questions)
    return score(group.questions, predictions.texts, scoring).summary()
