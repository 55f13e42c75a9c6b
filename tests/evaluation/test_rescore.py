"""Rows are scored again as they were scored; whatever differs is named."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

import pytest

from diet_mt.evaluation.hypotheses import put_result
from diet_mt.evaluation.json_rows import write_rows
from diet_mt.evaluation.records import Result
from diet_mt.evaluation.rescore import differences as differing
from diet_mt.evaluation.scores import scores
from diet_mt.files import sha256

from ..calling import called
from .rows import row

HYPOTHESES = ["a b c d e", "f g h i j x"]
REFERENCES = ["a b c d e", "f g h i j k"]


def scored(hypotheses: list[str], references: list[str]) -> Result:
    return row(**scores(hypotheses, references))


def differences(result: Result, hypotheses: list[str], references: list[str]) -> list[str]:
    return differing(result, scores(hypotheses, references))


@pytest.fixture(scope="module")
def new() -> Result:
    return scored(HYPOTHESES, REFERENCES)


def test_what_was_scored_scores_again(new: Result) -> None:
    assert new.bleu_ci > 0
    assert differences(new, HYPOTHESES, REFERENCES) == []


@pytest.mark.parametrize(
    "name", ["bleu", "chrf", "bleu_mean", "bleu_ci", "sentences", "length_ratio"]
)
@pytest.mark.parametrize("value", [0, 7])
def test_a_number_that_differs_is_named(new: Result, name: str, value: int) -> None:
    changed = row(**{**vars(new), name: value})
    (found,) = differences(changed, HYPOTHESES, REFERENCES)
    assert found.startswith(f"{name} {value} stored, ")


def test_an_interval_of_no_width_is_checked_too() -> None:
    """Of translations that are all wrong, or all right."""
    wrong = scored(["x", "y"], REFERENCES)
    assert wrong.bleu == wrong.bleu_mean == wrong.bleu_ci == 0
    (found,) = differences(row(**{**vars(wrong), "bleu_ci": 1.0}), ["x", "y"], REFERENCES)
    assert found == "bleu_ci 1.0 stored, 0.0 now"


def test_a_row_is_verified_by_what_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hypotheses, references = ["a b c d e", "f g h i j"], ["a b c d e", "f g h i j k l m"]
    new = scored(hypotheses, references)
    assert (new.length_ratio, new.precisions) == (round(10 / 13, 4), "100.00/100.00/100.00/100.00")
    assert new.bleu == pytest.approx(100 * math.exp(1 - 13 / 10), abs=1e-4)
    old = row(**{**vars(new), "length_ratio": None, "precisions": ""})
    (tmp_path / "refs.de").write_text("".join(f"{line}\n" for line in references))
    text = "".join(f"{line}\n" for line in hypotheses)
    digests = {"hypotheses_sha256": hashlib.sha256(text.encode()).hexdigest()}
    digests["references_sha256"] = sha256(tmp_path / "refs.de")
    file = put_result(tmp_path, row(**{**vars(old), **digests}), text)
    verify = ("verify", file, "--references", tmp_path / "refs.de")
    assert called(*verify) == 0
    write_rows(file, [row(**{**vars(old), **digests, "precisions": "99.00/100.00/100.00/100.00"})])
    capsys.readouterr()
    assert called(*verify) == 2
    assert "precisions 99.00/100.00/100.00/100.00 stored, 100" in capsys.readouterr().out


def test_no_rows_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("x.jsonl", "refs.de"):
        (tmp_path / name).write_text("" if name == "x.jsonl" else "ein Hund\n")
    assert called("verify", tmp_path / "x.jsonl", "--references", tmp_path / "refs.de") == 2
    assert capsys.readouterr().err.startswith("error: the files hold no results; give")


def test_another_version_of_sacrebleu_is_no_difference(new: Result) -> None:
    version = new.bleu_signature.rpartition("version:")[2]
    changed = new.bleu_signature.replace(version, "1.0")
    assert (
        differences(row(**{**vars(new), "bleu_signature": changed}), HYPOTHESES, REFERENCES) == []
    )
    other = new.bleu_signature.replace("tok:13a", "tok:intl")
    (found,) = differences(row(**{**vars(new), "bleu_signature": other}), HYPOTHESES, REFERENCES)
    assert found.startswith("bleu_signature ")
