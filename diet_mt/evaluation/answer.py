"""Answers to questions with a fine-tuned checkpoint of ``extractive_qa``."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import utils

from ..bert.answer_scores import score, scoring_of
from ..bert.questions.collections import NAMES
from ..bert.questions.decoding import N_BEST, Candidate, candidates_of, no_answer
from ..bert.questions.features import read_about
from ..bert.questions.predictions import Predictions
from ..bert.questions.prepare import prepare
from ..errors import UserError
from ..tasks._question_sets import QuestionSet
from .checkpoint import portable_file
from .fine_tuned import content_of, facts, load_fine_tuned, missing_rows, quiet, train_command
from .task_records import TaskResult, put_task_result

SQUAD = "SQuAD"
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
    """``data``: the folder made by diet-mt prepare qa, for its dictionary.

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


@dataclass(frozen=True)
class Request:
    """What is to be answered, and where the answers go."""

    data: Path  # made by diet-mt prepare qa
    checkpoint: Path
    out: Path  # folder for the answers
    file: Path | None = None  # questions in SQuAD's JSON; None: splits of ``data``
    language: str = ""  # of the file
    scoring: str = "squad"  # of the file
    max_answer: int = 0  # pieces; 0: as in training
    count: int = N_BEST  # answers to list
    threshold: float = 0.0  # of the odds of no answer
    results: Path | None = None  # folder for the record
    task: str | None = None  # its name there; None: by the split
    system: str | None = None  # the same; None: the encoding's
    pretrained: Path | None = None  # the checkpoint that was fine-tuned
    batch_size: int = 32  # windows

    def command(self, split: str, name: str) -> str:
        """For the record, with folders by their last names; ``name``: of the file's questions."""
        words = ["diet-mt", "answer", self.data.name, self.checkpoint.name]
        given = ["--split", split] if split else ["--file", name]
        return shlex.join([*words, *given, "--max-answer", str(self.max_answer)])


def answer_sets(asked: Request, splits: list[str]) -> None:
    """Answers each split, or the file, keeps the answers and prints a line. Raises UserError.

    Answers of the same checkpoint that are there already, with their row, stay.
    """
    content = content_of(asked.checkpoint) if asked.results else ""
    if asked.results and not asked.file and all((asked.out / each).is_dir() for each in splits):
        tasks = {each: asked.task or task_of(each) for each in splits}
        splits = missing_rows(asked.results, asked.checkpoint, content, tasks)
        if not splits:
            return
    quiet()
    answerer = load_answerer(asked.checkpoint, asked.data)
    asked = replace(asked, max_answer=asked.max_answer or answerer.task.cfg.max_answer)
    own: dict[str, Any] = {}
    if asked.results:
        own = facts(asked.checkpoint, content, answerer.model, asked.pretrained, ())
        own["system"] = asked.system or own["system"]
    for split in [""] if asked.file else splits:
        print(_answer_set(asked, answerer, own, split), flush=True)


def _answer_set(asked: Request, answerer: Answerer, own: dict[str, Any], split: str) -> str:
    """``split``: empty for the file."""
    how = Decoding(asked.max_answer, asked.count, asked.threshold)
    out = asked.out / split
    with _folder_of(asked, split) as folder:
        group = answerer.task.question_set(split or "file", folder)
        windows = answerer.task.windows_of(group)
        predictions = answer(answerer, group, windows, how, asked.batch_size)
        metrics = metrics_of(group, predictions)
    if asked.results and not metrics:
        raise UserError(f"{group.about.name}: no gold answers; leave --results out")
    predictions.write(out)
    words = [" ".join(f"{name} {value:.4f}" for name, value in metrics.items())] if metrics else []
    if asked.results:
        result = _result(asked, split, own, group, metrics)
        words.append(f"-> {put_task_result(asked.results, result)}")
    name = split or group.about.name
    task = asked.task or task_of(split)
    return "\t".join([task, name, f"{len(predictions.texts)} questions", *words])


@contextmanager
def _folder_of(asked: Request, split: str) -> Iterator[Path]:
    """The folder of the prepared questions; one of a file exists for as long as it is needed."""
    if asked.file is None:
        yield asked.data / split
        return
    sizes = read_about(asked.data / "train").sizes
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "questions"
        language, scoring = asked.language, asked.scoring
        prepare(asked.file, asked.data, folder, sizes, language=language, scoring=scoring)
        yield folder


def task_of(split: str) -> str:
    """``test_xquad_de`` -> ``XQuAD``; ``valid`` -> ``SQuAD``."""
    collection = split.split("_")[1] if split.count("_") > 1 else ""
    return NAMES.get(collection, collection) if collection else SQUAD


def metrics_of(group: QuestionSet, predictions: Predictions) -> dict[str, float]:
    """Scores from 0 to 100; nothing where there are no gold answers."""
    if not all(each.has_gold for each in group.questions):
        return {}
    scoring = scoring_of(group.about.scoring, group.about.language, group.questions)
    return score(group.questions, predictions.texts, scoring).summary()


def _result(
    asked: Request,
    split: str,
    own: dict[str, Any],
    group: QuestionSet,
    metrics: dict[str, float],
) -> TaskResult:
    """The record of one evaluation; ``own``: the facts about the checkpoint."""
    train = read_about(asked.data / "train")
    command = asked.command(split, group.about.name)
    return TaskResult(
        task=asked.task or task_of(split),
        split=split or group.about.name,
        language=group.about.language,
        metrics=metrics,
        main_metric="f1",
        commands=[*train_command(asked.checkpoint), command],
        examples=group.about.questions,
        train_examples=train.questions,
        predictions=portable_file(asked.out / split / "predictions.json"),
        notes=[
            f"trained on {train.name}",
            f"tested on {group.about.name}",
            f"scored as {group.about.scoring}",
        ],
        **own,
    )
