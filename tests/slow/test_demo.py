"""The demo, smaller than it is, in an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.evaluation.records import read_results

from ..commands.runner import Runner
from .running import run

WORDS = (
    "sweep demo --jobs 2 --set train_options=[--max-epoch,1] --set system=[sinusoidal,diet_rel] "
    "--set prepare_options=[--train-pairs,400,--valid-pairs,20,--test-pairs,21,--bpe-merges,200]"
)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_from_nothing_to_the_table_and_again(tmp_path: Path, server: Runner) -> None:
    table = run(server, WORDS, tmp_path).ok().stdout
    assert table.startswith("generated word order, en-de, "), "the table alone"
    log = tmp_path / "checkpoints/demo/diet_rel.1/train.log"
    written = log.stat().st_mtime_ns
    assert run(server, WORDS, tmp_path).ok().stdout == table
    assert log.stat().st_mtime_ns == written
    rows = read_results(tmp_path / "checkpoints/demo/results/demo.en-de.jsonl")
    assert sorted(row.arch for row in rows) == ["diet_rel_tiny", "sinusoidal_tiny"]
    assert {(row.sentences, row.beam, row.lenpen) for row in rows} == {(21, 10, 0.6)}
