"""Public reports of wrong scores: BLEU, SQuAD and GLUE."""

from __future__ import annotations

import logging
import math
from pathlib import Path

import numpy as np
import pytest

from diet_mt.bert.answer_scores import best_thresholds, score, scoring_of, squad_scores
from diet_mt.bert.glue import NLI, TASKS
from diet_mt.bert.labelled import write_label_dictionary
from diet_mt.bert.metrics import measure
from diet_mt.bert.squad import read_squad
from diet_mt.bert.tokenizer import load
from diet_mt.bert.windows import COLUMNS, WindowSizes, make_features, windows
from diet_mt.evaluation import scores
from diet_mt.system.errors import UserError

from ..bert.made import article, entry, question, write_squad, write_vocabulary
from ..bert.test_answers import asked


def test_empty_references() -> None:
    """sacrebleu #161, espnet #4715: an empty line among the references ends the evaluation."""
    assert scores.score(["a b c d e", ""], ["a b c d e", ""])["bleu"] == 100
    found = scores.score(["a b c d e", "x"], ["a b c d e", ""])
    # 5 of 6 words, and every longer n-gram.
    assert found["bleu"] == pytest.approx(100 * (5 / 6) ** (1 / 4), abs=1e-3)
    assert found["length_ratio"] == 1.2


def test_nothing_but_empty_lines() -> None:
    """sacrebleu #225: half of a test set is empty."""
    found = scores.score([""], ["a b c d"])
    assert (found["bleu"], found["length_ratio"]) == (0, 0)
    assert scores.score([""], [""])["bleu"] == 0


def test_fewer_hypotheses_than_references() -> None:
    """sacrebleu #160: 2134 hypotheses of 3004 references."""
    with pytest.raises(UserError, match="2 hypotheses but 3 references"):
        scores.score(["a", "b"], ["a", "b", "c"])


def test_answers_of_which_nothing_is_left() -> None:
    """lm-evaluation-harness #3212: "unanswerable" is no empty answer.

    Nor is anything else that SQuAD's normalization leaves.
    """
    assert squad_scores("unanswerable", [""], version_2=True) == (0, 0)
    assert squad_scores("", [""], version_2=True) == (1, 1)
    assert squad_scores("a the an.", [""], version_2=True) == (1, 1)
    assert squad_scores("The cat's", ["cats"], version_2=True) == (1, 1)


def test_thresholds_read_the_odds() -> None:
    """transformers #8710: odds of no answer are all 0, and so is every best threshold."""
    questions = [asked("a", "cat"), asked("b", impossible=True)]
    texts, odds = {"a": "cat", "b": "dog"}, {"a": -2.5, "b": 1.5}
    found = score(questions, texts, scoring_of("squad", "", questions))
    assert found.summary()["f1"] == 50
    best = best_thresholds(found, texts, odds)
    assert (best["best_f1"], best["best_f1_thresh"]) == (100, -2.5)
    assert (best["best_exact"], best["best_exact_thresh"]) == (100, -2.5)


@pytest.fixture(scope="module")
def vocab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_vocabulary(tmp_path_factory.mktemp("reports") / "vocab")


@pytest.mark.parametrize(
    ("context", "answer"),
    [
        pytest.param("red is the old house", "red", id="FARM-698-first-token"),
        pytest.param("the old house is red", "red", id="FARM-698-last-token"),
        pytest.param("the house is red \n", "red", id="FARM-449-space-behind"),
        pytest.param("  \t the house is red", "red", id="datasets-2586-leading-spaces"),
        pytest.param("the  old\u00a0 house is red", "old\u00a0 house", id="datasets-2586-inside"),
    ],
)
def test_answers_are_cut_from_the_context(context: str, answer: str, vocab: Path) -> None:
    sizes = WindowSizes(max_tokens=40, stride=12, max_question=9)
    features, lost = make_features([question(context, answer)], load(vocab), {}, sizes)
    (row,) = [dict(zip(COLUMNS, each, strict=True)) for each in features.windows.tolist()]
    extents = features.extents[features.slice_of(0)]
    assert lost == 0 < row["start"] <= row["end"]
    assert context[extents[row["start"]][0] : extents[row["end"]][1]] == answer


@pytest.mark.parametrize("stride", [1, 5, 114])
def test_windows_leave_no_token_out(stride: int) -> None:
    """transformers #2548: tokens between two windows are in neither, where the stride is as long
    as a window.
    """
    found = windows(157, 114, stride)
    assert {token for begin, end in found for token in range(begin, end)} == set(range(157))
    assert max(end - begin for begin, end in found) == 114


def test_windows_without_the_answer(vocab: Path) -> None:
    """google-research/bert #540, transformers #441: windows without the answer point at their
    first token, also for a question that has one.
    """
    context = "the old house " * 12 + "red"
    sizes = WindowSizes(max_tokens=20, stride=6, max_question=3)
    features, lost = make_features([question(context, "red")], load(vocab), {}, sizes)
    answered = features.column("end") > 0
    assert lost == 0 < answered.sum() < len(features)
    assert not features.column("start")[~answered].any()


def test_gold_answers_are_where_they_say(tmp_path: Path) -> None:
    """squash-generation #22: ``answer_start`` is wrong."""
    wrong = entry("q", "which?", "a red house", "red")
    wrong["answers"][0]["answer_start"] = 3
    with pytest.raises(UserError, match=r"question q: answer 'red' .* character 3"):
        read_squad(write_squad(tmp_path / "q.json", article("a red house", wrong)))


@pytest.mark.parametrize(
    ("name", "predicted", "gold"),
    [
        pytest.param("matthews", [1, 1, 1], [1, 1, 1], id="scikit-learn-25258-one-class"),
        pytest.param("matthews", [0, 0, 0], [0, 1, 0], id="torchmetrics-779-nan"),
        pytest.param("pearson", [2.5, 2.5, 2.5], [1, 2, 3], id="transformers-11555-constant"),
        pytest.param("spearman", [1, math.nan, 2], [1, 2, 3], id="SentEval-7-nan"),
    ],
)
def test_undefined_is_0_and_logged(
    name: str, predicted: list[float], gold: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert measure(name, np.array(predicted), np.array(gold)) == 0
    assert name in caplog.text
    assert len(caplog.records) == 1


def test_metrics_of_glue() -> None:
    """fairseq #1561: which metric the scores of MRPC, QQP and STS-B are."""
    metrics = {name: set(task.metrics) for name, task in TASKS.items()}
    assert metrics["MRPC"] == metrics["QQP"] == {"accuracy", "f1"}
    assert metrics["STS-B"] == {"pearson", "spearman"}
    assert metrics["CoLA"] >= {"matthews"}


def test_order_of_labels(tmp_path: Path) -> None:
    """transformers #12822, TextAttack #684: MNLI's labels are numbered in another order."""
    write_label_dictionary(tmp_path / "labels.txt", NLI)
    listed = [line.split()[0] for line in (tmp_path / "labels.txt").read_text().splitlines()]
    assert listed[:3] == ["contradiction", "neutral", "entailment"]


def test_labels_by_another_name(tmp_path: Path) -> None:
    """XNLI #11: ``contradictory`` in some files is ``contradiction`` in others."""
    with pytest.raises(UserError, match="row 2: unknown label 'contradictory'"):
        NLI.checked("contradictory", "row 2")
