"""Answers from the logits of windows, and predictions in SQuAD's format."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..system.errors import UserError
from ..system.files import write_text
from .squad import Question, read_json

Floats = npt.NDArray[np.floating]

MAX_ANSWER = 30  # pieces, as in Devlin et al.'s published code


@dataclass(frozen=True)
class Candidate:
    """Characters ``[begin, end)`` of a context; (0, 0) means no answer. Score: sum of logits."""

    begin: int
    end: int
    start_logit: float
    end_logit: float

    @property
    def score(self) -> float:
        return self.start_logit + self.end_logit

    @property
    def order(self) -> tuple[float, int, int]:
        """Sort key: best first; of equal scores the one that begins and then ends first."""
        return -self.score, self.begin, self.end

    def text_in(self, context: str) -> str:
        """The text of the answer, without surrounding white space."""
        return context[self.begin : self.end].strip()


def best_spans(
    start: Floats, end: Floats, max_answer: int, count: int
) -> list[tuple[float, int, int]]:
    """The ``count`` best spans (score, first, last) of at most ``max_answer`` tokens, best first,
    then by begin and end, by exhaustive search. ``start``, ``end``: (S,) logits of a context.
    """
    max_answer = min(max_answer, len(start)) or 1
    padded = np.pad(end.astype(np.float64), (0, max_answer), constant_values=-np.inf)
    ends = np.lib.stride_tricks.sliding_window_view(padded, max_answer)[: len(start)]
    scores = (start[:, None] + ends).ravel()  # by begin and then by end
    count = min(count, int(np.isfinite(scores).sum()))
    if not count:
        return []
    chosen = np.flatnonzero(scores >= np.partition(scores, -count)[-count])
    chosen = chosen[np.argsort(-scores[chosen], kind="stable")][:count]
    first, more = np.divmod(chosen, max_answer)
    return list(zip(scores[chosen].tolist(), first.tolist(), (first + more).tolist(), strict=True))


def candidates_of(
    start: Floats,
    end: Floats,
    extents: npt.NDArray[np.integer],
    context: int,
    max_answer: int,
    count: int,
) -> list[Candidate]:
    """The best answers within one window, at most ``count``, which may overlap.

    Args:
        start, end: (S,) logits of all tokens of the window, without padding.
        extents: (S, 2) characters of each token.
        context: First column of the context, which ends before the last token.
    """
    inside = slice(context, len(start) - 1)
    places = extents[inside]
    # Pieces without characters begin and end no answer: a neighbour gives the same one.
    empty = places[:, 0] >= places[:, 1]
    starts, ends = (np.where(empty, -np.inf, logits[inside]) for logits in (start, end))
    return [
        Candidate(int(places[i][0]), int(places[j][1]), float(starts[i]), float(ends[j]))
        for _, i, j in best_spans(starts, ends, max_answer, count)
    ]


def no_answer(start: Floats, end: Floats) -> Candidate:
    """The candidate without an answer, scored by the logits of <s> of a window."""
    return Candidate(0, 0, float(start[0]), float(end[0]))


def merge(candidates: Iterable[Candidate], count: int) -> list[Candidate]:
    """The ``count`` best of all windows of a question, each place once, with its best score."""
    best: dict[tuple[int, int], Candidate] = {}
    for candidate in sorted(candidates, key=lambda candidate: candidate.order):
        best.setdefault((candidate.begin, candidate.end), candidate)
    return list(best.values())[:count]


@dataclass
class AnswerPredictions:
    """Predicted answers to a set of questions, by their ids."""

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
        """Adds a question with the candidates of all its windows, of which ``count`` are listed.

        ``nothing``: no answer, with its least score of all windows (None: every question has an
        answer), predicted where it scores more than ``threshold`` above the best.
        """
        best = merge(candidates, count)
        text = best[0].text_in(question.context) if best else ""
        listed = best
        if nothing is not None:
            odds = nothing.score - (best[0].score if best else nothing.score)
            self.null_odds[question.id] = odds
            if odds > threshold:
                text = ""
            listed = sorted([*best, nothing], key=lambda candidate: candidate.order)[:count]
        self.texts[question.id] = text
        weights = [math.exp(candidate.score - listed[0].score) for candidate in listed]
        self.n_best[question.id] = [
            {
                "text": candidate.text_in(question.context),
                "probability": weight / sum(weights),
                "start_logit": candidate.start_logit,
                "end_logit": candidate.end_logit,
                "answer_start": candidate.begin if candidate.end else -1,
            }
            for candidate, weight in zip(listed, weights, strict=True)
        ]

    def write(self, folder: Path) -> None:
        """Writes ``predictions.json``, ``nbest.json`` and, for SQuAD 2.0, ``null_odds.json``."""
        files: dict[str, Mapping[str, Any]] = {"predictions": self.texts, "nbest": self.n_best}
        if self.null_odds:
            files["null_odds"] = self.null_odds
        for name, content in files.items():
            text = json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False)
            write_text(folder / f"{name}.json", text + "\n")


def read_predictions(path: Path) -> dict[str, str]:
    """Texts by the ids of questions."""
    return _read(path, str, "a text")


def read_null_odds(path: Path) -> dict[str, float]:
    """Odds of no answer, by the ids of questions."""
    return {key: float(value) for key, value in _read(path, (int, float), "a number").items()}


def _read(path: Path, kind: Any, what: str) -> dict[str, Any]:
    content = read_json(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: not an object of ids; give predictions in SQuAD's format")
    for key, value in content.items():
        if not isinstance(value, kind) or isinstance(value, bool):
            raise UserError(f"{path}, question {key}: {value!r}, expected {what}")
    return content
