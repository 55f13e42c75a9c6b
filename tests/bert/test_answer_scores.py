"""F1 and exact match, worked out by hand from the published evaluations."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Sequence

import pytest

from diet_mt.bert.answer_scores import (
    AnswerScores,
    best_thresholds,
    mlqa_scores,
    score,
    scoring_of,
    squad_scores,
)
from diet_mt.bert.questions.squad import Answer, Question
from diet_mt.errors import UserError

ROUNDING = 1e-12

# Prediction, gold answers, exact match and F1 of SQuAD 1.1.
SQUAD = [
    ("The cat.", ["cat"], 1, 1),
    ("CAT", ["a cat", "dog"], 1, 1),
    ("a black cat", ["cat sat"], 0, 1 / 2),
    # The best gold answer counts: 1/2 and 1 against 1 and 2/3.
    ("New York", ["York", "the New York City"], 0, 4 / 5),
    # Words as often as they are there: 3 of 3 and 3 of 6.
    ("to be to", ["to be or not to be"], 0, 2 / 3),
    ("twenty-one", ["twentyone"], 1, 1),
    ("twenty one", ["twenty-one"], 0, 0),
    ("", ["cat"], 0, 0),
    ("dog", ["cat"], 0, 0),
    ("  cat \n", ["cat"], 1, 1),
    # Only English articles, only ASCII punctuation.
    ("der Hund", ["Hund"], 0, 2 / 3),
    ("an der Wand", ["der Wand"], 1, 1),
    ("«oui»", ["oui"], 0, 0),
    ("$5", ["5"], 1, 1),
    # Chinese is one word from space to space.
    ("南京", ["南京大学"], 0, 0),
    ("南京大学", ["南京大学"], 1, 1),
    ("南京，大学", ["南京大学"], 0, 0),
    ("الحرب العالمية", ["الحرب"], 0, 2 / 3),
    ("la guerra", ["guerra"], 0, 2 / 3),
    # Of which normalization leaves nothing: as its script has it, no word is shared.
    ("The", ["the"], 1, 0),
    ("", [""], 1, 0),
]


@pytest.mark.parametrize(("prediction", "golds", "exact", "f1"), SQUAD)
def test_squad_1(prediction: str, golds: list[str], exact: float, f1: float) -> None:
    found = squad_scores(prediction, golds, version_2=False)
    assert found == pytest.approx((exact, f1), abs=ROUNDING)


@pytest.mark.parametrize(
    ("prediction", "golds", "exact", "f1"),
    [
        *SQUAD[:-2],
        ("", [""], 1, 1),
        ("cat", [""], 0, 0),
        ("The", ["the"], 1, 1),
        # Gold answers of which nothing is left are left out.
        ("", ["the", "cat"], 0, 0),
        ("the", ["the", "cat"], 0, 0),
    ],
)
def test_squad_2(prediction: str, golds: list[str], exact: float, f1: float) -> None:
    found = squad_scores(prediction, golds, version_2=True)
    assert found == pytest.approx((exact, f1), abs=ROUNDING)


def _plain(text: str) -> list[str]:
    text = "".join(each for each in text.lower() if each not in string.punctuation)
    return [word for word in re.split(r"\s+", text) if word not in ("a", "an", "the", "")]


def _by_counting(prediction: str, golds: Sequence[str]) -> tuple[float, float]:
    """Words shared, crossed off one by one."""
    best = 0.0
    for gold in golds:
        left, shared = _plain(gold), 0
        for word in _plain(prediction):
            if word in left:
                left.remove(word)
                shared += 1
        if shared:
            best = max(best, 2 * shared / (len(_plain(prediction)) + len(_plain(gold))))
    return float(any(_plain(prediction) == _plain(gold) for gold in golds)), best


def test_squad_1_on_many_texts() -> None:
    generator = random.Random(2)
    pool = ["a", "The", "cat", "Cat!", "dog", "dog's", "(an)", "1,000", "1000", "ü", "-"]

    def text() -> str:
        return " ".join(generator.choices(pool, k=generator.randint(0, 5)))

    for _ in range(300):
        prediction, golds = text(), [text() for _ in range(generator.randint(1, 3))]
        found = squad_scores(prediction, golds, version_2=False)
        assert found == pytest.approx(_by_counting(prediction, golds), abs=ROUNDING)


@pytest.mark.parametrize(
    ("language", "prediction", "golds", "exact", "f1"),
    [
        ("en", "The cat.", ["cat"], 1, 1),
        ("en", "", ["cat"], 0, 0),
        ("en", "", [""], 1, 0),
        ("de", "der Hund", ["Hund"], 1, 1),
        ("de", "an der Wand", ["Wand"], 0, 2 / 3),
        ("es", "la guerra", ["guerra", "paz"], 1, 1),
        ("es", "«oui»", ["oui"], 1, 1),
        ("ar", "الحرب العالمية", ["حرب"], 0, 1 / 2),
        ("zh", "南京", ["南京大学"], 0, 2 / 3),
        ("zh", "南京，大学", ["南京大学"], 1, 1),
        ("zh", "大学 A", ["A大"], 0, 4 / 5),
        ("vi", "cái bàn", ["bàn"], 1, 1),
        ("hi", "एक घर", ["घर"], 0, 2 / 3),
    ],
)
def test_mlqa(language: str, prediction: str, golds: list[str], exact: float, f1: float) -> None:
    assert mlqa_scores(prediction, golds, language) == pytest.approx((exact, f1))


def asked(name: str, *golds: str, impossible: bool = False) -> Question:
    return Question(name, "?", "context", tuple(Answer(gold, 0) for gold in golds), impossible)


def test_means_over_a_set() -> None:
    questions = [asked("a", "cat"), asked("b", "black cat"), asked("c", "x")]
    scoring = scoring_of("squad", "", questions)
    found = score(questions, {"a": "cat", "b": "cat"}, scoring)
    # c has no prediction, and counts as 0.
    assert found.summary() == pytest.approx(
        {"exact_match": 100 / 3, "f1": 100 * (1 + 2 / 3) / 3}, abs=1e-4
    )
    assert scoring_of("mlqa", "de", questions)("der Hund", ["Hund"]) == (1, 1)


def test_questions_that_cannot_be_answered() -> None:
    questions = [asked("a", "cat"), asked("b", impossible=True), asked("c", impossible=True)]
    found = score(questions, {"a": "", "b": "", "c": "x"}, scoring_of("squad", "", questions))
    assert found.summary() == pytest.approx(
        {
            "exact_match": 100 / 3,
            "f1": 100 / 3,
            "HasAns_exact_match": 0,
            "HasAns_f1": 0,
            "NoAns_exact_match": 50,
            "NoAns_f1": 50,
        }
    )


def test_what_cannot_be_scored() -> None:
    with pytest.raises(UserError, match="question a has no gold answers"):
        score([asked("a")], {}, scoring_of("squad", "", []))
    with pytest.raises(UserError, match=r"2 predictions are of other questions \(x, for"):
        score([asked("a", "b")], {"x": "", "y": "", "a": ""}, scoring_of("squad", "", []))
    with pytest.raises(UserError, match="language 'fi'"):
        score([asked("a", "b")], {"a": ""}, scoring_of("mlqa", "fi", []))


def test_best_threshold_worked_out_by_hand() -> None:
    # By odds: a, right; b, impossible but answered; c, half right; d, impossible, unanswered.
    questions = [
        asked("a", "cat"),
        asked("b", impossible=True),
        asked("c", "black cat", "red"),
        asked("d", impossible=True),
    ]
    texts = {"a": "cat", "b": "x", "c": "black", "d": ""}
    odds = {"a": -3.0, "b": -1.0, "c": 0.5, "d": 2.0}
    scores = score(questions, texts, scoring_of("squad", "", questions))
    # Nothing answered: 2 right. a answered: 3. Then b: 2, c: 2 and 2 2/3, d: the same.
    found = best_thresholds(scores, texts, odds)
    assert found == {
        "best_exact": 75.0,
        "best_exact_thresh": -3.0,
        "best_f1": 75.0,
        "best_f1_thresh": -3.0,
    }
    with pytest.raises(UserError, match="question d has no odds"):
        best_thresholds(scores, texts, {"a": 0, "b": 0, "c": 0})


def test_the_best_threshold_is_no_worse_than_any_other() -> None:
    generator = random.Random(3)
    for _ in range(30):
        questions = [
            asked(str(n), *([] if impossible else ["cat"]), impossible=impossible)
            for n, impossible in enumerate(generator.choices([True, False], k=9))
        ]
        texts = {each.id: generator.choice(["cat", "dog", ""]) for each in questions}
        odds = {each.id: generator.uniform(-1, 1) for each in questions}
        scores = AnswerScores(
            questions,
            {each.id: squad_scores(texts[each.id], each.golds, True) for each in questions},
        )
        best = best_thresholds(scores, texts, odds)["best_f1"]

        def with_threshold(
            limit: float,
            questions: list[Question] = questions,
            texts: dict[str, str] = texts,
            odds: dict[str, float] = odds,
        ) -> float:
            given = {name: text if odds[name] <= limit else "" for name, text in texts.items()}
            pairs = [squad_scores(given[each.id], each.golds, True) for each in questions]
            return 100 * sum(f1 for _, f1 in pairs) / len(pairs)

        every = [with_threshold(limit) for limit in [-2.0, *odds.values()]]
        assert best == pytest.approx(max(every), abs=1e-4)
