"""p-values are kept with what they belong to, and never speak for anything else."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from diet_mt.errors import UserError
from diet_mt.evaluation.comparisons import (
    Comparison,
    file_beside,
    key_of,
    read_comparisons,
)
from diet_mt.evaluation.json_rows import write_rows

from ..evaluation.rows import seeds_of
from .made_up import comparisons

(BASELINE,) = seeds_of("sinusoidal", {1: 30.0})
(SYSTEM,) = seeds_of("diet_rel", {1: 31.0})


@pytest.fixture
def kept() -> Comparison:
    (comparison,) = comparisons([BASELINE, SYSTEM])
    return comparison


def test_what_was_written_is_read(tmp_path: Path, kept: Comparison) -> None:
    file = tmp_path / "new" / "x.jsonl"
    other = dataclasses.replace(kept, seed=2, hypotheses_sha256="0" * 64, test_set="a\u2028b")
    write_rows(file, [kept, other])
    assert read_comparisons(file) == {kept.key: kept, other.key: other}
    assert not list(tmp_path.rglob("*.part"))


def test_no_file_is_no_comparisons(tmp_path: Path) -> None:
    assert read_comparisons(tmp_path / "x.jsonl") == {}


def test_the_file_lies_beside_the_results() -> None:
    assert file_beside(Path("results/news.jsonl")) == Path("results/significance/news.jsonl")


@pytest.mark.parametrize(
    ("side", "name"),
    [(0, "hypotheses_sha256"), (1, "hypotheses_sha256"), (0, "references_sha256")],
)
def test_a_stale_comparison_is_ignored(kept: Comparison, side: int, name: str) -> None:
    pair = [SYSTEM, BASELINE]
    assert key_of(*pair) == kept.key
    pair[side] = dataclasses.replace(pair[side], **{name: "0" * 64})
    assert key_of(*pair) != kept.key


@pytest.mark.parametrize(
    ("p_value", "signature", "shown"),
    [
        (0.000999, "nrefs:1|bs:1000|seed:12345", "≤ 0.001"),  # 1 / 1001: no resample in 1,000
        (0.001998, "nrefs:1|bs:1000|seed:12345", "0.002"),  # one
        (1.0, "nrefs:1|bs:1000|seed:12345", "1.000"),
        (0.0001, "bs:10000", "≤ 0.0001"),
        (0.0002, "bs:10000", "0.0002"),
        (0.009901, "bs:100", "≤ 0.01"),
        (0.019802, "bs:100", "0.020"),
        (0.000999, "version:2.6.0", "≤ 0.001"),  # of a number that is not said
        (0.019, "version:2.6.0", "0.019"),
    ],
)
def test_no_p_value_is_shown_below_the_smallest_of_its_test(
    kept: Comparison, p_value: float, signature: str, shown: str
) -> None:
    found = dataclasses.replace(kept, p_value=p_value, signature=signature)
    assert found.p_text == shown


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "Expecting"),
        ("[]", "not a JSON object"),
        ("{}", "no field 'test_set'"),
        ("@p_value=1.5", "field 'p_value' is 1.5, expected 0 to 1"),
        ("@p_value='0.1'", "expected float"),
    ],
)
def test_a_bad_line_is_refused(tmp_path: Path, kept: Comparison, line: str, complaint: str) -> None:
    file = tmp_path / "x.jsonl"
    write_rows(file, [kept])
    good = file.read_text(encoding="utf-8")
    if line.startswith("@"):
        value = line.partition("=")[2].replace("'", '"')
        line = good.replace(f'"p_value": {kept.p_value}', f'"p_value": {value}').strip()
    file.write_text(good + line + "\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"x\.jsonl, line 2: .*delete it") as caught:
        read_comparisons(file)
    assert complaint in str(caught.value)
