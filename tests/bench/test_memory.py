"""``diet-mt bench memory``: each case in a process of its own, with the forced implementation."""

from __future__ import annotations

import json

import pytest

from diet_mt.bench import memory

from ..calling import called


def test_factors_need_far_less_than_the_table() -> None:
    """At 1024 tokens a table of four heads has 16 MiB, and there are three of them."""
    table, factors = (
        memory.peak(f"diet_abs, {path}", "train", 1024)["peak_bytes"]
        for path in ("table", "factors")
    )
    assert table > 16 * 2**20
    assert factors < table / 1.5


def test_records(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "peak", lambda case, kind, n: {"peak_bytes": n, "seconds": 1})
    monkeypatch.setattr(memory, "LONGEST_TRAINING", {"stock": 2})
    assert called("bench", "memory", "--lengths", "2", "4") == 0
    records = list(map(json.loads, capsys.readouterr().out.strip().split("\n")))
    runs = {(r["measure"], r["case"], r["length"], r["peak_bytes"]) for r in records}
    assert runs == {
        (measure, case, length, length)
        for measure in ("forward", "train")
        for case in memory.CASES
        for length in (2, 4)
    } - {("train", "stock", 4, 4)}
