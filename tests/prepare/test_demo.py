"""The demo corpus, cleaned and by SentencePiece: settings that its usual run does not have."""

from __future__ import annotations

from pathlib import Path

from .running import only_error, prepare, stages_of, state


def test_the_demo(tmp_path: Path) -> None:
    # fairseq-preprocess has more processes than a file has sentences, and gives some of them none.
    sizes = ("--train-pairs", 200, "--valid-pairs", 10, "--test-pairs", 10, "--workers", 4)
    own = ("--clean", "--certainty", 2, "--subwords", "spm", "--spm-size", 150)
    words = ("demo", "--out", tmp_path / "out", *sizes, *own)
    said = prepare(*words, "--seed", 2).ok()
    assert "test.de: 10, expected 10" in said
    assert said.endswith(f"ready: {tmp_path}/out/bin\n")
    assert stages_of(tmp_path / "out") == ["raw", "clean", "spm.model", "spm", "bin"]
    before = state(tmp_path / "out")
    assert prepare(*words, "--seed", 2).ok().count("done before") == 5
    assert state(tmp_path / "out") == before
    message = only_error(prepare(*words, "--seed", 3))
    assert "was made with seed=2, not seed=3" in message
