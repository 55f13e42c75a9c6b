"""What fairseq-generate printed, in the order of the corpus, whole or not at all; and what is
noted of a decoding, beside its output.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
import torch

from diet_mt.errors import UserError
from diet_mt.evaluation.decoded import (
    Identity,
    facts_of,
    read_decoded,
    read_facts,
    write_facts,
)

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


def test_facts_are_those_of_here_and_now() -> None:
    facts = facts_of(["--max-len-b", "5", "--cpu"])
    assert facts.options == "--max-len-b 5 --cpu"
    assert (facts.device, facts.threads) == ("cpu", torch.get_num_threads())
    assert facts.date == datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")


def test_facts_are_read_as_they_were_written(tmp_path: Path) -> None:
    facts, identity = facts_of(["--nbest", "2"]), Identity("fairseq-generate x", "c" * 64, "d" * 64)
    file, output = tmp_path / "facts", tmp_path / "output"
    output.write_text("H-0\t-0.1\tein Hund", encoding="utf-8")
    write_facts(file, identity, facts, [output])
    assert read_facts(file, [output]) == (identity, facts, True)
    output.write_text("H-0\t-0.1\tein Kind", encoding="utf-8")
    assert read_facts(file, [output]) == (identity, facts, False)
    for content in ("{", "[1]", '{"date": ""}', '{"identity": {}, "facts": {}}'):
        file.write_text(content, encoding="utf-8")
        with pytest.raises(UserError, match="facts: does not say what was decoded where"):
            read_facts(file, [output])
