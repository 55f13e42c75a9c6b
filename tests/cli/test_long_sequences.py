"""Memory over long sentences: measured in processes of their own, on the path asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diet_mt.cli import long_sequences
from diet_mt.errors import UserError


@pytest.mark.parametrize("kind", ["forward", "train"])
def test_factors_need_far_less_than_the_table(kind: str) -> None:
    """At 2048 tokens a table of four heads has 64 MiB; the factors of both sides have 4."""
    table, factors = (
        long_sequences.in_own_process("diet-abs", path, kind, "2048")["peak_bytes"]
        for path in long_sequences.PATHS
    )
    assert table > 64 * 2**20
    assert factors < table / 2


def test_what_fails_in_the_process_is_told() -> None:
    with pytest.raises(UserError, match=r"no-such-encoding .*ended with"):
        long_sequences.in_own_process("no-such-encoding", "table", "forward", "8")


def test_records_table_and_picture(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        long_sequences,
        "in_own_process",
        lambda _, path, kind, n: {
            "peak_bytes": int(n) ** (2 if path == "table" else 1) * 2**20,
            "seconds": 1.0,
        },
    )
    assert long_sequences.main(["--lengths", "2", "4"]) == 0
    out = capsys.readouterr().out
    assert len(out.strip().split("\n")) == 2 * 2 * 2
    assert json.loads(out.split("\n")[0])["encoding"] == "diet-abs"
    file, picture = tmp_path / "long.jsonl", tmp_path / "long.png"
    file.write_text(out, encoding="utf-8")
    assert long_sequences.main(["--table", str(file)]) == 0
    text = capsys.readouterr().out
    assert "| forward | table | 4 MiB | 16 MiB (x 4.0) |" in text
    assert "| train | factors | 2 MiB | 4 MiB (x 2.0) |" in text
    pytest.importorskip("matplotlib")
    assert long_sequences.main(["--plot", str(picture), str(file)]) == 0
    assert picture.read_bytes()[:4] == b"\x89PNG"
