"""F1 and exact match of answers, equal to the official evaluations of SQuAD and MLQA.

SQuAD's over the words of ``squad_words``. An answer of which that leaves nothing ("The") has an F1
of 0 in version 1.1, whatever the gold answer, but of 1 in version 2.0 where the gold answer is
empty, too. MLQA's over those of ``questions.normalise``. XQuAD and TyDiQA-GoldP are scored as SQuAD
1.1 in every language (XTREME, Hu et al. 2020, arXiv:2003.11080).

Two things are stricter here. A question without a prediction counts as 0 also in version 2.0, whose
script leaves it out of the mean; predictions of other questions, which the scripts pass over, are
refused.
"""

from __future__ import annotations

import json
import re
import string
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..errors import UserError
from .questions.normalise import words
from .questions.predictions import read_null_odds, read_predictions
from .questions.squad import Question, read_squad

# Prediction, gold answers -> exact match and F1, each from 0 to 1.
Scoring = Callable[[str, Sequence[str]], tuple[float, float]]


def squad_scores(prediction: str, golds: Sequence[str], version_2: bool) -> tuple[float, float]:
    """Exact match and F1, 0 to 1, each with the gold answer that gives most."""
    predicted = squad_words(prediction)
    listed = [squad_words(gold) for gold in golds]
    if version_2:
        # Its script leaves out what normalization makes empty, unless nothing else is there.
        listed = [gold for gold in listed if gold] or [[]]
    return _best(predicted, listed, empty=float(version_2))


def squad_words(text: str) -> list[str]:
    """The words of an answer as SQuAD's script has them: in lower case, without ASCII punctuation
    and English articles.
    """
    text = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def mlqa_scores(prediction: str, golds: Sequence[str], language: str) -> tuple[float, float]:
    """Exact match and F1, 0 to 1, each with the gold answer that gives most.

    Raises UserError where MLQA has no rules for the language.
    """
    return _best(words(prediction, language), [words(gold, language) for gold in golds])


def _best(
    predicted: list[str], golds: Sequence[list[str]], empty: float = 0.0
) -> tuple[float, float]:
    """Exact match and F1; ``empty``: the F1 of nothing where nothing is right."""
    exact = max(float(predicted == gold) for gold in golds)
    f1 = max(_overlap(predicted, gold) if predicted or gold else empty for gold in golds)
    return exact, f1


def _overlap(predicted: list[str], gold: list[str]) -> float:
    """Harmonic mean of precision and recall of words; 0 where none is shared."""
    shared = sum((Counter(predicted) & Counter(gold)).values())
    if shared == 0:
        return 0.0
    precision, recall = shared / len(predicted), shared / len(gold)
    return 2 * precision * recall / (precision + recall)


def scoring_of(kind: str, language: str, questions: Sequence[Question]) -> Scoring:
    """How a set is scored.

    Args:
        kind: squad or mlqa. SQuAD's is that of version 2.0 where a question is impossible.
    """
    if kind == "mlqa":
        return partial(mlqa_scores, language=language)
    return partial(squad_scores, version_2=any(each.impossible for each in questions))


@dataclass(frozen=True)
class AnswerScores:
    """Scores of each question that was answered, by its id, as [exact match, F1] from 0 to 1."""

    questions: Sequence[Question]
    by_id: Mapping[str, tuple[float, float]]

    def summary(self) -> dict[str, float]:
        """Means over all questions, 0 to 100: ``exact_match`` and ``f1``; where some questions are
        impossible also those over the two kinds, ``HasAns_f1``, ``NoAns_f1`` and so on.

        A question that was not answered counts as 0.
        """
        found = self._means("", self.questions)
        possible = [each for each in self.questions if not each.impossible]
        if len(possible) < len(self.questions):
            found |= self._means("HasAns_", possible)
            found |= self._means("NoAns_", [each for each in self.questions if each.impossible])
        return found

    def _means(self, prefix: str, questions: Sequence[Question]) -> dict[str, float]:
        pairs = [self.by_id.get(each.id, (0.0, 0.0)) for each in questions]
        return {
            prefix + name: 100 * sum(pair[place] for pair in pairs) / max(1, len(pairs))
            for place, name in ((1, "f1"), (0, "exact_match"))
        }


def score(
    questions: Sequence[Question], predictions: Mapping[str, str], scoring: Scoring
) -> AnswerScores:
    """Compares predictions, by the ids of questions, with the gold answers. Raises UserError where
    a question has no gold answers, or a prediction is of another question.
    """
    without = [each.id for each in questions if not each.has_gold]
    if without:
        raise UserError(f"question {without[0]} has no gold answers, so there are no scores")
    unknown = predictions.keys() - {each.id for each in questions}
    if unknown:
        raise UserError(
            f"{len(unknown)} predictions are of other questions ({min(unknown)}, for example); "
            "give the predictions and the questions of one set"
        )
    answered = [each for each in questions if each.id in predictions]
    return AnswerScores(
        questions, {each.id: scoring(predictions[each.id], each.golds) for each in answered}
    )


def best_thresholds(
    scores: AnswerScores, predictions: Mapping[str, str], null_odds: Mapping[str, float]
) -> dict[str, float]:
    """The scores that the best threshold on the odds of no answer would give, and that threshold:
    ``best_f1``, ``best_f1_thresh``, ``best_exact``, ``best_exact_thresh``. Questions whose odds are
    above it are left unanswered. As the evaluation script of SQuAD 2.0 finds it. Raises UserError
    where a question has no odds.
    """
    missing = [each.id for each in scores.questions if each.id not in null_odds]
    if missing:
        raise UserError(f"question {missing[0]} has no odds of no answer; give those of this set")
    best = {}
    ordered = sorted(scores.questions, key=lambda each: null_odds[each.id])
    # At first, nothing is answered.
    none_answered = sum(each.impossible for each in ordered)
    for place, name in enumerate(("exact", "f1")):
        current = highest = float(none_answered)
        threshold = 0.0
        for each in ordered:
            if each.impossible:
                current -= bool(predictions.get(each.id))
            else:
                current += scores.by_id.get(each.id, (0.0, 0.0))[place]
            if current > highest:
                highest, threshold = current, null_odds[each.id]
        best[f"best_{name}"] = 100 * highest / len(ordered)
        best[f"best_{name}_thresh"] = threshold
    return best


def score_files(
    gold: Path, predictions: Path, *, scoring: str, language: str, null_odds: Path | None = None
) -> str:
    """One JSON object with the scores of ``predictions``, texts by the ids of questions.

    Args:
        gold: SQuAD's JSON, plain or gzipped.
        scoring, language: as in ``scoring_of``.
        null_odds: of SQuAD 2.0: adds the best thresholds.
    """
    questions = read_squad(gold)
    texts = read_predictions(predictions)
    found = score(questions, texts, scoring_of(scoring, language, questions))
    shown = found.summary()
    if null_odds:
        shown |= best_thresholds(found, texts, read_null_odds(null_odds))
    missing = len(questions) - len(found.by_id)
    if missing:
        print(f"{missing} of {len(questions)} questions have no prediction", file=sys.stderr)
    return json.dumps({"total": len(questions)} | shown)
