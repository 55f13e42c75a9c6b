"""The demo, smaller than it is, in an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.evaluation.records import read_results

from .stubs import finish, start

SMALLER = (
    "prepare_options=[--train-pairs,400,--valid-pairs,20,--test-pairs,21,--bpe-merges,200]",
    "train_options=[--max-epoch,1]",
    "system=[sinusoidal,diet_rel]",
)
WORDS = [word for each in SMALLER for word in ("--set", each)]


@pytest.mark.slow
def test_from_nothing_to_the_table_and_again(tmp_path: Path) -> None:
    tables = []
    for _ in range(2):
        process = start("demo", *WORDS, "--jobs", "2", cwd=tmp_path)
        out, errors = finish(process, seconds=280)
        assert process.returncode == 0, errors
        assert out.startswith("generated word order, en-de, "), "the table alone"
        tables.append(out)
        train_log = tmp_path / "checkpoints/demo/diet_rel.1/train.log"
        written = train_log.stat().st_mtime_ns
    assert tables[0] == tables[1]
    assert train_log.stat().st_mtime_ns == written
    rows = read_results(tmp_path / "checkpoints/demo/results/demo.en-de.jsonl")
    assert sorted(row.arch for row in rows) == ["diet_rel_tiny", "sinusoidal_tiny"]
    assert {(row.sentences, row.beam, row.lenpen) for row in rows} == {(21, 10, 0.6)}
