"""Predictions in SQuAD's format, worked out by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from diet_mt.bert.questions.decoding import Candidate
from diet_mt.bert.questions.predictions import Predictions, read_null_odds, read_predictions
from diet_mt.errors import UserError

from .made_up import question

ASKED = question("one two three", "two")
TWO, ALL = Candidate(4, 7, 1.0, 2.0), Candidate(0, 13, 1.0, 1.0)


def test_the_best_answer_and_its_odds() -> None:
    found = Predictions()
    found.add(ASKED, [ALL, TWO], None, 0.0, 5)
    assert found.texts == {"one": "two"}
    first, second = found.n_best["one"]
    assert (first["text"], first["answer_start"]) == ("two", 4)
    assert (first["start_logit"], first["end_logit"]) == (1.0, 2.0)
    assert second["text"] == "one two three"
    assert first["probability"] == pytest.approx(math.e / (1 + math.e))
    assert first["probability"] + second["probability"] == pytest.approx(1)
    assert found.null_odds == {}


@pytest.mark.parametrize(("threshold", "text"), [(0.0, ""), (0.5, "two"), (0.4, "")])
def test_no_answer_is_predicted_above_the_threshold(threshold: float, text: str) -> None:
    found = Predictions()
    nothing = Candidate(0, 0, 3.0, 0.5)
    found.add(ASKED, [TWO, ALL], nothing, threshold, 2)
    assert found.texts == {"one": text}
    assert found.null_odds == {"one": 0.5}
    assert [each["text"] for each in found.n_best["one"]] == ["", "two"]
    assert found.n_best["one"][0]["answer_start"] == -1


def test_a_question_whose_windows_say_nothing() -> None:
    found = Predictions()
    found.add(ASKED, [], None, 0.0, 5)
    assert (found.texts, found.n_best) == ({"one": ""}, {"one": []})


def test_written_and_read(tmp_path: Path) -> None:
    found = Predictions({"a": "Straße"}, {"a": []}, {"a": -1.5})
    found.write(tmp_path / "new")
    assert read_predictions(tmp_path / "new" / "predictions.json") == {"a": "Straße"}
    assert read_null_odds(tmp_path / "new" / "null_odds.json") == {"a": -1.5}
    assert json.loads((tmp_path / "new" / "nbest.json").read_text()) == {"a": []}
    Predictions({"a": ""}).write(tmp_path / "other")
    assert not (tmp_path / "other" / "null_odds.json").exists()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("[]", "not an object of ids"),
        ('{"a": 1}', "question a: 1, expected a text"),
        ("{", "not JSON"),
    ],
)
def test_wrong_predictions_are_refused(tmp_path: Path, content: str, complaint: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(content)
    with pytest.raises(UserError, match=r"p\.json") as error:
        read_predictions(path)
    assert complaint in str(error.value)
