"""From logits to predictions and their scores, by hand from the published evaluations."""

from __future__ import annotations

import json
import logging
import math
import random
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from diet_mt.bert.answer_scores import (
    best_thresholds,
    mlqa_scores,
    mlqa_words,
    score,
    scoring_of,
    squad_scores,
)
from diet_mt.bert.answers import (
    AnswerPredictions,
    Candidate,
    best_spans,
    candidates_of,
    merge,
    no_answer,
    read_null_odds,
    read_predictions,
)
from diet_mt.bert.metrics import measure
from diet_mt.bert.squad import GoldAnswer, Question
from diet_mt.system.errors import UserError

from .made import question

ROUNDING = 1e-12


def by_exhaustion(
    start: np.ndarray, end: np.ndarray, longest: int, count: int
) -> list[tuple[float, int, int]]:
    spans = []
    for i in range(len(start)):
        for j in range(i, min(i + longest, len(start))):
            total = float(start[i]) + float(end[j])
            if total > float("-inf"):
                spans.append((total, i, j))
    return sorted(spans, key=lambda span: (-span[0], span[1], span[2]))[:count]


@pytest.mark.parametrize("length", [0, 1, 2, 5, 17])
@pytest.mark.parametrize("longest", [1, 2, 4, 30])
def test_best_spans_against_exhaustive_search(length: int, longest: int) -> None:
    draw = np.random.default_rng(length * 100 + longest)
    for count in (1, 3, 20, 1000):
        # Whole numbers: many scores are equal.
        for start, end in (
            draw.normal(size=(2, length)).astype(np.float32),
            draw.integers(-2, 3, size=(2, length)).astype(np.float32),
        ):
            start[draw.random(length) < 0.2] = -np.inf
            spans = best_spans(start, end, longest, count)
            assert spans == by_exhaustion(start, end, longest, count)


def test_an_answer_is_in_the_context_alone() -> None:
    # <s> question </s> </s> two pieces </s>, and great logits everywhere else.
    start, end = np.full(7, 50.0), np.full(7, 50.0)
    start[4:6], end[4:6] = (1, 2), (3, 4)
    extents = np.array([[-1, -1]] * 4 + [[0, 3], [4, 6]] + [[-1, -1]])
    assert candidates_of(start, end, extents, 4, max_answer=5, count=9) == [
        Candidate(4, 6, 2.0, 4.0),
        Candidate(0, 6, 1.0, 4.0),
        Candidate(0, 3, 1.0, 3.0),
    ]
    assert no_answer(start, end) == Candidate(0, 0, 50.0, 50.0)


def test_pieces_without_characters_begin_and_end_nothing() -> None:
    start = end = np.array([0.0, 0, 0, 0, 9, 1, 0])
    extents = np.array([[-1, -1]] * 4 + [[2, 2], [2, 5], [-1, -1]])
    assert candidates_of(start, end, extents, 4, 30, 20) == [Candidate(2, 5, 1.0, 1.0)]
    # A context without pieces has no answers.
    assert candidates_of(start[:5], end[:5], extents[[0, 1, 2, 3, 6]], 4, 30, 20) == []


def test_windows_are_merged_by_characters() -> None:
    low, high = Candidate(4, 9, 1.0, 1.0), Candidate(4, 9, 2.0, 1.5)
    other, same = Candidate(0, 3, 1.0, 2.5), Candidate(1, 3, 1.0, 2.5)
    # All three score 3.5: the one that begins first comes first.
    assert merge([low, same, other, high], 9) == [other, same, high]
    assert merge([low, same, other, high], 2) == [other, same]


WHAT = question("one two three", "two")
TWO, ALL = Candidate(4, 7, 1.0, 2.0), Candidate(0, 13, 1.0, 1.0)


def test_the_best_answer_and_its_odds() -> None:
    predictions = AnswerPredictions()
    predictions.add(WHAT, [ALL, TWO], None, 0.0, 5)
    assert predictions.texts == {"one": "two"}
    first, second = predictions.n_best["one"]
    assert (first["text"], first["answer_start"]) == ("two", 4)
    assert (first["start_logit"], first["end_logit"]) == (1.0, 2.0)
    assert second["text"] == "one two three"
    assert first["probability"] == pytest.approx(math.e / (1 + math.e))
    assert first["probability"] + second["probability"] == pytest.approx(1)
    assert predictions.null_odds == {}
    predictions.add(WHAT, [], None, 0.0, 5)
    assert (predictions.texts, predictions.n_best) == ({"one": ""}, {"one": []})


@pytest.mark.parametrize(("threshold", "text"), [(0.0, ""), (0.5, "two"), (0.4, "")])
def test_no_answer_is_predicted_above_the_threshold(threshold: float, text: str) -> None:
    predictions = AnswerPredictions()
    predictions.add(WHAT, [TWO, ALL], Candidate(0, 0, 3.0, 0.5), threshold, 2)
    assert predictions.texts == {"one": text}
    assert predictions.null_odds == {"one": 0.5}
    assert [answer["text"] for answer in predictions.n_best["one"]] == ["", "two"]
    assert predictions.n_best["one"][0]["answer_start"] == -1


def test_predictions_are_written_and_read(tmp_path: Path) -> None:
    AnswerPredictions({"a": "Straße"}, {"a": []}, {"a": -1.5}).write(tmp_path / "new")
    assert read_predictions(tmp_path / "new" / "predictions.json") == {"a": "Straße"}
    assert read_null_odds(tmp_path / "new" / "null_odds.json") == {"a": -1.5}
    assert json.loads((tmp_path / "new" / "nbest.json").read_text()) == {"a": []}
    AnswerPredictions({"a": ""}).write(tmp_path / "other")
    assert not (tmp_path / "other" / "null_odds.json").exists()
    for content in ("[]", '{"a": 1}', "{"):
        (tmp_path / "p.json").write_text(content)
        with pytest.raises(UserError, match=r"p\.json"):
            read_predictions(tmp_path / "p.json")


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
    # Empty after normalization: as its script has it, no word is shared.
    ("The", ["the"], 1, 0),
    ("", [""], 1, 0),
]
SQUAD_2 = [
    *SQUAD[:-2],
    ("", [""], 1, 1),
    ("cat", [""], 0, 0),
    ("The", ["the"], 1, 1),
    # Empty gold answers are left out.
    ("", ["the", "cat"], 0, 0),
    ("the", ["the", "cat"], 0, 0),
]
CASES = [(False, *case) for case in SQUAD] + [(True, *case) for case in SQUAD_2]


@pytest.mark.parametrize(("version_2", "prediction", "golds", "exact", "f1"), CASES)
def test_squad(version_2: bool, prediction: str, golds: list[str], exact: float, f1: float) -> None:
    result = squad_scores(prediction, golds, version_2)
    assert result == pytest.approx((exact, f1), abs=ROUNDING)


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("en", "The  Cat, a DOG!", "cat dog"),
        ("en", "an apple-tree $5", "appletree 5"),
        ("en", "atheist theatre", "atheist theatre"),
        ("en", "\u201cquoted\u201d — dash", "quoted dash"),
        ("de", "Der Hund und eine Katze", "hund und katze"),
        ("de", "dem, DES; einem einer", ""),
        ("es", "¿Los niños y la niña?", "niños y niña"),
        ("es", "del un uno", "del uno"),
        # As published: also within a word.
        ("ar", "الحرب العالمية", "حرب ع مية"),
        ("ar", "مقال طويل", "مق طويل"),
        ("ar", "ما هذا؟", "ما هذا"),
        ("hi", "यह एक घर है।", "यह एक घर है"),
        ("vi", "Cái bàn của Lan", "bàn lan"),
        ("zh", "南京大学 ABC 1。", "南 京 大 学 abc 1"),
        ("zh", "《红楼梦》，1791年", "红 楼 梦 1791 年"),
        # As published: only the basic range is split.
        ("zh", "\U00020000\U00020001中", "\U00020000\U00020001 中"),
    ],
)
def test_words_of_mlqa(language: str, text: str, words: str) -> None:
    assert mlqa_words(text, language) == words.split()


def test_mlqa() -> None:
    for language, prediction, golds, exact, f1 in (
        ("en", "", [""], 1, 0),
        ("es", "la guerra", ["guerra", "paz"], 1, 1),
        ("ar", "الحرب العالمية", ["حرب"], 0, 1 / 2),
        ("zh", "南京", ["南京大学"], 0, 2 / 3),
        ("zh", "大学 A", ["A大"], 0, 4 / 5),
    ):
        assert mlqa_scores(prediction, golds, language) == pytest.approx((exact, f1))


def item(name: str, *golds: str, impossible: bool = False) -> Question:
    return Question(name, "?", "context", tuple(GoldAnswer(gold, 0) for gold in golds), impossible)


def test_means_over_a_set() -> None:
    questions = [item("a", "cat"), item("b", "black cat"), item("c", "x")]
    scores = score(questions, {"a": "cat", "b": "cat"}, scoring_of("squad", "", questions))
    # c has no prediction, and counts as 0.
    means = {"exact_match": 100 / 3, "f1": 100 * (1 + 2 / 3) / 3}
    assert scores.summary() == pytest.approx(means, abs=1e-4)
    assert scoring_of("mlqa", "de", questions)("der Hund", ["Hund"]) == (1, 1)
    questions = [item("a", "cat"), item("b", impossible=True), item("c", impossible=True)]
    scores = score(questions, {"a": "", "b": "", "c": "x"}, scoring_of("squad", "", questions))
    means = {"exact_match": 100 / 3, "f1": 100 / 3, "HasAns_exact_match": 0, "HasAns_f1": 0}
    assert scores.summary() == pytest.approx({**means, "NoAns_exact_match": 50, "NoAns_f1": 50})


def test_predictions_of_another_set_are_refused() -> None:
    with pytest.raises(UserError, match="question a "):
        score([item("a")], {}, scoring_of("squad", "", []))
    with pytest.raises(UserError, match=r"2 .*x"):
        score([item("a", "b")], {"x": "", "y": "", "a": ""}, scoring_of("squad", "", []))
    with pytest.raises(UserError, match="language 'fi'"):
        score([item("a", "b")], {"a": ""}, scoring_of("mlqa", "fi", []))


def test_best_thresholds_against_exhaustive_search() -> None:
    """The lowest of the best ones, as by the published script."""
    generator = random.Random(3)
    for _ in range(30):
        questions = [
            item(str(n), *([] if impossible else ["black cat"]), impossible=impossible)
            for n, impossible in enumerate(generator.choices([True, False], k=9))
        ]
        texts = {each.id: generator.choice(["black cat", "cat", ""]) for each in questions}
        odds = {each.id: generator.uniform(-1, 1) for each in questions}
        scores = score(questions, texts, partial(squad_scores, version_2=True))
        best = best_thresholds(scores, texts, odds)
        for place, name in enumerate(("exact", "f1")):
            means = {}
            for limit in [-2.0, *sorted(odds.values())]:
                given = {each: text if odds[each] <= limit else "" for each, text in texts.items()}
                pairs = [squad_scores(given[each.id], each.golds, True) for each in questions]
                means[limit] = 100 * sum(pair[place] for pair in pairs) / len(pairs)
            assert best[f"best_{name}"] == pytest.approx(max(means.values()))
            lowest = max(means, key=lambda limit: round(means[limit], 6))
            assert best[f"best_{name}_thresh"] == (0.0 if lowest == -2.0 else lowest)
    with pytest.raises(UserError, match="question 0 "):
        best_thresholds(scores, texts, {})


# 3 true positives, 1 false positive, 1 false negative, 2 true negatives.
PREDICTED = [1, 1, 1, 1, 0, 0, 0]
GOLD = [1, 1, 1, 0, 1, 0, 0]
SCORED = [1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 4.0, 8.0]


@pytest.mark.parametrize(
    ("name", "predicted", "gold", "value"),
    [
        ("accuracy", PREDICTED, GOLD, 100 * 5 / 7),
        ("f1", PREDICTED, GOLD, 100 * 6 / 8),  # 2 tp / (2 tp + fp + fn)
        # Of class 1; with the classes exchanged: 2 tp, 1 fp, 1 fn.
        ("f1", [1 - n for n in PREDICTED], [1 - n for n in GOLD], 100 * 4 / 6),
        ("matthews", PREDICTED, GOLD, 100 * 5 / 12),  # (3*2 - 1*1) / sqrt(4 * 4 * 3 * 3)
        # Deviations -1.5 -0.5 0.5 1.5 and -1.75 -2.75 0.25 4.25: products 10.5, squares 5, 28.75.
        ("pearson", *SCORED, 100 * 10.5 / (5 * 28.75) ** 0.5),
        ("spearman", *SCORED, 80.0),  # ranks 1 2 3 4 and 2 1 3 4: 1 - 6 * 2 / (4 * 15)
    ],
)
def test_metrics(name: str, predicted: list[float], gold: list[float], value: float) -> None:
    assert measure(name, np.array(predicted), np.array(gold)) == pytest.approx(value, abs=1e-4)


@pytest.mark.parametrize(
    ("name", "predicted", "gold"),
    [
        ("matthews", [1, 1, 1], [1, 0, 1]),
        ("spearman", [1, 2, 3], [4, 4, 4]),
        ("pearson", [1, float("nan"), 3], [1, 2, 3]),
        ("accuracy", [1, float("nan"), 0], [1, 0, 0]),
        ("f1", [0, 0], [0, 0]),
    ],
)
def test_an_undefined_metric_is_0_with_a_warning(
    name: str, predicted: list[float], gold: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert measure(name, np.array(predicted), np.array(gold)) == 0.0
    assert len(caplog.records) == 1
