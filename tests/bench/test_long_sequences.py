"""Memory over long sentence pairs: measured in processes of their own, on the way asked for."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from diet_mt.bench import long_sequences

from ..calling import called


def test_factors_need_far_less_than_the_table() -> None:
    """At 1024 tokens a table of four heads has 16 MiB, and there are three of them."""
    table, factors = (
        long_sequences.in_own_process(f"diet_abs, {path}", "train", 1024)["peak_bytes"]
        for path in ("table", "factors")
    )
    assert table > 16 * 2**20
    assert factors < table / 1.5


def test_records_table_and_picture(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        long_sequences,
        "in_own_process",
        lambda case, kind, n: {
            "peak_bytes": n ** (1 if "fac" in case else 2) * 2**20,
            "seconds": 1,
        },
    )
    monkeypatch.setattr(long_sequences, "_LONGEST", {"stock": 2})
    assert called("bench", "memory", "--lengths", "2", "4") == 0
    out = capsys.readouterr().out
    assert len(out.strip().split("\n")) == 4 * 2 + (3 * 2 + 1)  # forward, training
    assert json.loads(out.split("\n")[0])["case"] == "diet_abs, table"
    file, picture = tmp_path / "long.jsonl", tmp_path / "long.png"
    file.write_text(out, encoding="utf-8")
    assert called("bench", "table", str(file)) == 0
    text = re.sub(" +", " ", capsys.readouterr().out)
    assert "| forward | diet_abs, table | 4 MiB | 16 MiB (x 4.0) |" in text
    assert "| train | diet_abs, factors | 2 MiB | 4 MiB (x 2.0) |" in text
    assert "| train | stock | 4 MiB | |" in text
    pytest.importorskip("matplotlib")
    assert called("bench", "memory", "--plot", str(picture), str(file)) == 0
    assert picture.read_bytes()[:4] == b"\x89PNG"
