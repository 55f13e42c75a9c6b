"""What fairseq-generate printed, read in the order of the corpus, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from diet_mt.errors import UserError
from diet_mt.evaluation.decoded import read_decoded

LOG = "INFO: Translated 3 sentences (12 tokens) in 0.5s (6.00 sentences/s, 24.50 tokens/s)\n"


def decoded(tmp_path: Path, output: str, log: str = LOG) -> Any:
    (tmp_path / "out").write_text(output, encoding="utf-8", newline="\n")
    (tmp_path / "log").write_text(log, encoding="utf-8", newline="\n")
    return read_decoded(tmp_path / "out", tmp_path / "log")


def test_hypotheses_come_in_the_order_of_the_corpus(tmp_path: Path) -> None:
    # Batches are sorted by length; of an n-best list the first is best; the second says nothing;
    # U+2028 is no line end.
    output = (
        "S-2\tx\nT-2\ty\nH-2\t-0.5\tzwei\u2028 @-@ drei\nD-2\t-0.5\tH-9\nP-2\t-1 -2\n"
        "H-0\t-0.1\tnull\nH-0\t-0.9\tworse\nH-1\t-3\t\n"
    )
    found = decoded(tmp_path, output)
    assert found.hypotheses == ["null", "", "zwei\u2028 @-@ drei"]
    assert (found.sentences_per_second, found.tokens_per_second) == (6.0, 24.5)


def test_the_log_may_be_on_either_side(tmp_path: Path) -> None:
    assert decoded(tmp_path, "H-0\t-1\ta\n" + LOG, log="").sentences_per_second == 6.0


@pytest.mark.parametrize(
    ("output", "log", "complaint"),
    [
        ("H-0\t-1\ta\nH-2\t-1\tc\n", LOG, "no hypothesis for sentence 1"),
        ("", LOG, "no hypothesis for sentence 0"),
        ("H-0\t-1\ta\n", "", "did not get to its end"),
    ],
)
def test_an_incomplete_output_is_refused(
    tmp_path: Path, output: str, log: str, complaint: str
) -> None:
    with pytest.raises(UserError, match=complaint):
        decoded(tmp_path, output, log)
