"""Predictions in SQuAD's format: which text answers which question."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import UserError
from ...files import make_folder, writing
from .decoding import Candidate, merge
from .spans import text_at
from .squad import Question, read_json


@dataclass
class Predictions:
    """What a model says about a set of questions, by their ids."""

    texts: dict[str, str] = field(default_factory=dict)  # predictions.json; empty: no answer
    n_best: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # nbest.json
    null_odds: dict[str, float] = field(default_factory=dict)  # null_odds.json

    def add(
        self,
        question: Question,
        candidates: Sequence[Candidate],
        nothing: Candidate | None,
        threshold: float,
        count: int,
    ) -> None:
        """Adds one question.

        Args:
            candidates: of all its windows.
            nothing: what gives the least score to having no answer, of all its windows; None
                where every question has one.
            threshold: no answer is predicted where ``nothing`` scores so much more than the best.
            count: answers to list.
        """
        best = merge(candidates, count)
        text = text_at(question.context, best[0].begin, best[0].end) if best else ""
        listed = best
        if nothing is not None:
            odds = nothing.score - (best[0].score if best else nothing.score)
            self.null_odds[question.id] = odds
            if odds > threshold:
                text = ""
            listed = sorted([*best, nothing], key=lambda each: each.order)[:count]
        self.texts[question.id] = text
        weights = _softmax([each.score for each in listed])
        self.n_best[question.id] = [
            {
                "text": text_at(question.context, each.begin, each.end),
                "probability": weight,
                "start_logit": each.start_logit,
                "end_logit": each.end_logit,
                "answer_start": each.begin if each.end else -1,
            }
            for each, weight in zip(listed, weights, strict=True)
        ]

    def write(self, folder: Path) -> None:
        """Writes ``predictions.json``, ``nbest.json`` and, for SQuAD 2.0, ``null_odds.json``."""
        make_folder(folder)
        files: dict[str, Mapping[str, Any]] = {"predictions": self.texts, "nbest": self.n_best}
        if self.null_odds:
            files["null_odds"] = self.null_odds
        for name, content in files.items():
            with writing(folder / f"{name}.json") as file:
                json.dump(content, file, ensure_ascii=False, indent=1, allow_nan=False)
                file.write("\n")


def _softmax(scores: Sequence[float]) -> list[float]:
    weights = [math.exp(score - max(scores)) for score in scores]
    return [weight / sum(weights) for weight in weights]


def read_predictions(path: Path) -> dict[str, str]:
    """Texts by the ids of questions. Raises UserError for anything else."""
    return _read(path, str, "a text")


def read_null_odds(path: Path) -> dict[str, float]:
    """Odds of having no answer, by the ids of questions. Raises UserError for anything else."""
    return {key: float(value) for key, value in _read(path, (int, float), "a number").items()}


def _read(path: Path, kind: Any, what: str) -> dict[str, Any]:
    found = read_json(path)
    if not isinstance(found, dict):
        raise UserError(f"{path}: not an object of ids; give predictions in SQuAD's format")
    for key, value in found.items():
        if not isinstance(value, kind) or isinstance(value, bool):
            raise UserError(f"{path}, question {key}: {value!r}, expected {what}")
    return found
