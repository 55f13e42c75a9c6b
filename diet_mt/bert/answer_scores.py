"""F1 and exact match of answers, equal to the official evaluations of SQuAD and MLQA.

An answer without words ("The") has an F1 of 0 in SQuAD 1.1, whatever the gold answer, but of 1 in
version 2.0 where the gold answer is empty, too. XQuAD and TyDiQA-GoldP are scored as SQuAD 1.1 in
every language (XTREME, Hu et al. 2020, arXiv:2003.11080). MLQA (Lewis et al. 2020,
arXiv:1910.07475) is scored as by its script, mlqa_evaluation_v1.py. Two rules of this script look
like errors but are retained, since published scores depend on them: the Arabic article is removed
also within a word, and Chinese characters beyond the basic range are not split.

Two rules are stricter than those of the scripts. A question without a prediction counts as 0 also
in version 2.0, whose script leaves it out of the mean. Predictions of other questions, which the
scripts ignore, raise UserError.
"""

from __future__ import annotations

import json
import re
import string
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from ..system.errors import UserError
from .answers import read_null_odds, read_predictions
from .squad import Question, read_squad

# Prediction, gold answers -> (exact match, F1), each from 0 to 1.
Scoring = Callable[[str, Sequence[str]], tuple[float, float]]

# MLQA's, as regular expressions; None: the language has none.
_ARTICLES: dict[str, str | None] = {
    "ar": "ال",
    "de": r"\b(?:ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "en": r"\b(?:a|an|the)\b",
    "es": r"\b(?:un|una|unos|unas|el|la|los|las)\b",
    "hi": None,
    "vi": r"\b(?:của|là|cái|chiếc|những)\b",
    "zh": None,
}


def squad_words(text: str) -> list[str]:
    """Words of an answer in lower case, without ASCII punctuation and English articles."""
    text = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def need_rules(language: str) -> None:
    """Raises UserError for a language that is not in MLQA."""
    if language not in _ARTICLES:
        raise UserError(f"language '{language}': MLQA has rules for {', '.join(_ARTICLES)} only")


@cache
def _is_punctuation(character: str) -> bool:
    # The ASCII signs include some that Unicode calls symbols: $ + < = > ^ ` | ~
    return character in string.punctuation or unicodedata.category(character).startswith("P")


def mlqa_words(text: str, language: str) -> list[str]:
    """Words of an answer in lower case, without punctuation of any script and without articles of
    the language; each Chinese character of the basic range is a word. Raises UserError for a
    language that is not in MLQA.
    """
    need_rules(language)
    plain = "".join(letter for letter in text.lower() if not _is_punctuation(letter))
    if articles := _ARTICLES[language]:
        plain = re.sub(articles, " ", plain)
    if language == "zh":
        plain = re.sub("([\u4e00-\u9fa5])", r" \1 ", plain)
    return plain.split()


def squad_scores(prediction: str, golds: Sequence[str], version_2: bool) -> tuple[float, float]:
    """(exact match, F1) from 0 to 1, each the maximum over the gold answers."""
    listed = [squad_words(gold) for gold in golds]
    if version_2:
        # Its script leaves out gold answers that normalization makes empty, unless all are.
        listed = [gold for gold in listed if gold] or [[]]
    return _best(squad_words(prediction), listed, empty=float(version_2))


def mlqa_scores(prediction: str, golds: Sequence[str], language: str) -> tuple[float, float]:
    """``squad_scores`` by the rules of MLQA. Raises as ``mlqa_words``."""
    return _best(mlqa_words(prediction, language), [mlqa_words(gold, language) for gold in golds])


def _best(
    predicted: list[str], golds: Sequence[list[str]], empty: float = 0.0
) -> tuple[float, float]:
    """Exact match and F1; ``empty``: F1 of two empty answers."""
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
    """The scoring of mlqa or squad (``kind``); squad: 2.0 if a question is impossible, else 1.1."""
    if kind == "mlqa":
        return partial(mlqa_scores, language=language)
    return partial(squad_scores, version_2=any(question.impossible for question in questions))


@dataclass(frozen=True)
class AnswerScores:
    """Scores of a test set; ``by_id``: (exact match, F1) from 0 to 1 of each answered question."""

    questions: Sequence[Question]
    by_id: Mapping[str, tuple[float, float]]

    def summary(self) -> dict[str, float]:
        """Means over all questions, 0 to 100: ``exact_match`` and ``f1``; where some questions are
        impossible also ``HasAns_f1``, ``NoAns_f1`` and so on. An unanswered question counts as 0.
        """
        groups = {"": self.questions}
        if any(question.impossible for question in self.questions):
            groups["HasAns_"] = [each for each in self.questions if not each.impossible]
            groups["NoAns_"] = [each for each in self.questions if each.impossible]
        return {
            prefix + name: 100 * sum(self.of(each)[place] for each in group) / max(1, len(group))
            for prefix, group in groups.items()
            for place, name in ((1, "f1"), (0, "exact_match"))
        }

    def of(self, question: Question) -> tuple[float, float]:
        """(exact match, F1) of a question from 0 to 1."""
        return self.by_id.get(question.id, (0.0, 0.0))


def score(
    questions: Sequence[Question], predictions: Mapping[str, str], scoring: Scoring
) -> AnswerScores:
    """Scores of ``predictions``, texts by the ids of questions. Raises UserError for a question
    without gold answers, and for predictions of other questions.
    """
    if without := [question.id for question in questions if not question.has_gold]:
        raise UserError(f"question {without[0]} has no gold answers, so there are no scores")
    golds = {question.id: question.golds for question in questions}
    if unknown := predictions.keys() - golds.keys():
        raise UserError(f"{len(unknown)} predictions of other questions, such as {min(unknown)}")
    by_id = {name: scoring(text, golds[name]) for name, text in predictions.items()}
    return AnswerScores(questions, by_id)


def best_thresholds(
    scores: AnswerScores, predictions: Mapping[str, str], null_odds: Mapping[str, float]
) -> dict[str, float]:
    """The best scores, 0 to 100, and their thresholds, odds of no answer above which questions are
    left unanswered: ``best_f1``, ``best_f1_thresh``, ``best_exact``, ``best_exact_thresh``. The
    algorithm of SQuAD 2.0's evaluation script. Raises UserError for missing odds.
    """
    if missing := [each.id for each in scores.questions if each.id not in null_odds]:
        raise UserError(f"question {missing[0]} has no null odds; give those of this set")
    best = {}
    ordered = sorted(scores.questions, key=lambda question: null_odds[question.id])
    unanswered = sum(question.impossible for question in ordered)  # score without any answer
    for place, name in enumerate(("exact", "f1")):
        current = highest = float(unanswered)
        threshold = 0.0
        for question in ordered:
            if question.impossible:
                current -= bool(predictions.get(question.id))
            else:
                current += scores.of(question)[place]
            if current > highest:
                highest, threshold = current, null_odds[question.id]
        best[f"best_{name}"] = 100 * highest / len(ordered)
        best[f"best_{name}_thresh"] = threshold
    return best


def score_files(
    gold: Path, predictions: Path, *, scoring: str, language: str, null_odds: Path | None = None
) -> str:
    """The scores of a file of predictions as one JSON object, with ``null_odds`` (SQuAD 2.0) also
    the best thresholds. ``scoring``: the ``kind`` of ``scoring_of``. Raises UserError as ``score``
    and ``best_thresholds``.
    """
    questions, texts = read_squad(gold), read_predictions(predictions)
    scores = score(questions, texts, scoring_of(scoring, language, questions))
    summary = scores.summary()
    if null_odds:
        summary |= best_thresholds(scores, texts, read_null_odds(null_odds))
    if missing := len(questions) - len(scores.by_id):
        print(f"{missing} of {len(questions)} questions have no prediction", file=sys.stderr)
    return json.dumps({"total": len(questions)} | summary)
