"""The demo corpus, cleaned and by SentencePiece: settings that its usual run does not have."""

from __future__ import annotations

import hashlib
from pathlib import Path

from diet_mt.corpora.recipes import write_demo
from diet_mt.corpora.settings import DEMO_SIZES
from diet_mt.files import sha256

from .running import only_error, prepare, stages_of, state


def test_the_demo(tmp_path: Path) -> None:
    # fairseq-preprocess has more processes than a file has sentences, and gives some of them none.
    sizes = ("--train-pairs", 200, "--valid-pairs", 10, "--test-pairs", 10, "--workers", 4)
    own = ("--clean", "--certainty", 2, "--subwords", "spm", "--spm-size", 150)
    words = ("demo", "--out", tmp_path / "out", *sizes, *own)
    said = prepare(*words).ok()
    assert "test.de: 10, expected 10" in said
    assert said.endswith(f"ready: {tmp_path}/out/bin\n")
    assert stages_of(tmp_path / "out") == ["raw", "clean", "spm.model", "spm", "bin"]
    before = state(tmp_path / "out")
    assert prepare(*words).ok().count("done before") == 5
    assert state(tmp_path / "out") == before
    message = only_error(prepare(*words, "--test-pairs", 9))
    assert "was made with pairs=200+10+10, not pairs=200+10+9" in message


def test_the_shipped_corpus(tmp_path: Path) -> None:
    """Its bytes, on which published scores rest; and no sentence on two lines."""
    write_demo(tmp_path, DEMO_SIZES)
    lines = {path.name: path.read_text("utf-8").split("\n")[:-1] for path in tmp_path.iterdir()}
    named = {f"{split}.{lang}": n for split, n in DEMO_SIZES.items() for lang in ("en", "de")}
    assert {name: len(text) for name, text in lines.items()} == {**named, "test.twins.de": 500}
    for lang in ("en", "de"):
        every = [line for split in DEMO_SIZES for line in lines[f"{split}.{lang}"]]
        assert len(set(every)) == len(every)
    digests = (f"{path.name} {sha256(path)}\n" for path in sorted(tmp_path.iterdir()))
    assert hashlib.sha256("".join(digests).encode()).hexdigest() == (
        "b747974afa6a778be390245b10365090d059037f49fa84d7af19ca1fef429793"
    )
