"""What is noted of a decoding, beside its output."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
import torch

from diet_mt.errors import UserError
from diet_mt.evaluation.decoded import Identity, facts_of, read_facts, write_facts


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
