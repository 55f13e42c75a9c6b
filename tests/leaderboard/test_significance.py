"""p-values are kept with what they belong to, and never speak for anything else."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from diet_mt.errors import UserError
from diet_mt.evaluation.comparisons import Comparison, file_beside, key_of, p_text, read_comparisons
from diet_mt.evaluation.json_rows import write_rows

from ..evaluation.rows import seeds_of
from .made_up import comparisons

(BASELINE,) = seeds_of("sinusoidal", {1: 30.0})
(SYSTEM,) = seeds_of("diet_rel", {1: 31.0})


@pytest.fixture
def kept() -> Comparison:
    return comparisons([BASELINE, SYSTEM])[0]


def test_what_was_written_is_read(tmp_path: Path, kept: Comparison) -> None:
    file = tmp_path / "new" / "x.jsonl"
    other = dataclasses.replace(kept, seeds=[2], mark="0" * 12, test_set="a\u2028b")
    write_rows(file, [kept, other])
    assert read_comparisons(file) == {kept.key: kept, other.key: other}
    assert not list(tmp_path.rglob("*.part"))


def test_no_file_is_no_comparisons(tmp_path: Path) -> None:
    assert read_comparisons(tmp_path / "x.jsonl") == {}


def test_the_file_lies_beside_the_results() -> None:
    assert file_beside(Path("results/news.jsonl")) == Path("results/significance/news.jsonl")


def test_a_stale_comparison_is_ignored(kept: Comparison) -> None:
    known = {kept.key: kept}
    assert known[key_of([SYSTEM])].p_to([BASELINE]) == next(iter(kept.p_values.values()))
    for name in ("hypotheses_sha256", "references_sha256"):
        stale = dataclasses.replace(SYSTEM, **{name: "0" * 64})
        assert key_of([stale]) not in known
    other = dataclasses.replace(BASELINE, hypotheses_sha256="0" * 64)
    assert kept.p_to([other]) is None
    assert key_of([SYSTEM, other]) not in known  # another seed


@pytest.mark.parametrize(
    ("p_value", "signature", "shown"),
    [
        (0.00009999, "nrefs:1|bs:10000|seed:12345", "≤ 0.0001"),  # 1 / 10001: none of 10,000
        (0.00019998, "nrefs:1|bs:10000|seed:12345", "0.0002"),  # one
        (1.0, "nrefs:1|bs:10000|seed:12345", "1.0000"),
        (0.009901, "bs:100", "≤ 0.01"),
        (0.019802, "bs:100", "0.0198"),
    ],
)
def test_no_p_value_is_shown_below_the_smallest_of_its_test(
    p_value: float, signature: str, shown: str
) -> None:
    assert p_text(p_value, signature) == shown


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "Expecting"),
        ("[]", "not a JSON object"),
        ("{}", "no field 'test_set'"),
        ("@p_values={'x': 1.5}", "field 'p_values' is 1.5, expected 0 to 1"),
        ("@p_values=0.1", "expected dict"),
    ],
)
def test_a_bad_line_is_refused(tmp_path: Path, kept: Comparison, line: str, complaint: str) -> None:
    file = tmp_path / "x.jsonl"
    write_rows(file, [kept])
    good = file.read_text(encoding="utf-8")
    if line.startswith("@"):
        value = line.partition("=")[2].replace("'", '"')
        line = re.sub(r'"p_values": \{.*?\}', f'"p_values": {value}', good).strip()
    file.write_text(good + line + "\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"x\.jsonl, line 2: .*delete it") as caught:
        read_comparisons(file)
    assert complaint in str(caught.value)
