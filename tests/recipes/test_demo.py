"""The demo corpus."""

from __future__ import annotations

from pathlib import Path

from .runner import only_error, run, state


def test_the_demo_recipe(tmp_path: Path) -> None:
    settings = {"TRAIN_PAIRS": 200, "VALID_PAIRS": 10, "TEST_PAIRS": 10, "CORPUS_SEED": 2}
    # More processes than a file has sentences: fairseq-preprocess gives some of them none.
    first = run("demo", OUT=tmp_path / "out", WORKERS=12, **settings)
    assert first.returncode == 0, first.stderr
    assert "test.de: 10 sentences, expected 10" in first.stderr
    assert first.stderr.endswith(f"ready: {tmp_path}/out/bin\n")
    before = state(tmp_path / "out")
    second = run("demo", OUT=tmp_path / "out", **settings)
    assert second.returncode == 0
    assert second.stderr.count("done before") == 5
    assert state(tmp_path / "out") == before
    other = run("demo", OUT=tmp_path / "out", **{**settings, "CORPUS_SEED": 3})
    message = only_error(other)
    assert "was made with 'en-de BPE_MERGES=150 pairs=200+10+10 seed=2'" in message
