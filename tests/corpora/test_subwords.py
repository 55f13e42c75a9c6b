"""The two kinds of subwords behind one command."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.corpora import subwords
from diet_mt.corpora.parallel import SPLITS
from diet_mt.errors import UserError

from .wmt18 import sentences


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "text"
    folder.mkdir()
    for split, some in zip(SPLITS, (150, 5, 5), strict=True):
        for lang in ("en", "de"):
            lines = [s[lang] + "\n" for s in sentences(some, seed=3)]
            (folder / f"{split}.{lang}").write_text("".join(lines), encoding="utf-8")
    return folder


@pytest.mark.parametrize(("kind", "size"), [("bpe", "100"), ("spm", "120")])
def test_learning_and_splitting(corpus: Path, tmp_path: Path, kind: str, size: str) -> None:
    model, files = tmp_path / "model", [str(corpus / "train.en"), str(corpus / "train.de")]
    learn = ["learn", "--kind", kind, "--size", size, "--out", str(model), *files]
    assert subwords.main([*learn, "--workers", "1"]) == 0
    apply = ["apply", "--kind", kind, "--model", str(model), str(corpus)]
    for workers in ("1", "2"):
        out = [str(tmp_path / f"out{workers}"), "en", "de", "--workers", workers]
        assert subwords.main([*apply, *out]) == 0
    for split in SPLITS:
        for lang in ("en", "de"):
            name = f"{split}.{lang}"
            pieces = (tmp_path / "out1" / name).read_text(encoding="utf-8")
            assert pieces == (tmp_path / "out2" / name).read_text(encoding="utf-8")
            text = (corpus / name).read_text(encoding="utf-8")
            assert pieces.count(" ") > text.count(" ")
            joined = [subwords.join(line, kind) for line in pieces.split("\n")]
            assert joined == text.split("\n")


def test_a_folder_says_what_its_data_are_made_of(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds neither bpe\.codes nor spm\.model; it should"):
        subwords.kind_of(tmp_path)
    (tmp_path / "spm.model").touch()
    assert subwords.kind_of(tmp_path) == "spm"
    (tmp_path / "bpe.codes").touch()
    with pytest.raises(UserError, match=r"holds bpe\.codes and spm\.model; .* no other"):
        subwords.kind_of(tmp_path)
    (tmp_path / "spm.model").unlink()
    assert subwords.kind_of(tmp_path) == "bpe"


def test_a_text_too_small_for_the_vocabulary_is_one_line(
    corpus: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--size", "9999", "--out", str(tmp_path / "m"), str(corpus / "valid.en")]
    assert subwords.main(["learn", "--kind", "spm", *arguments]) == 2
    error = [line for line in capfd.readouterr().err.split("\n") if line.startswith("error: ")]
    assert len(error) == 1
    assert "Vocabulary size is too high" in error[0] or "Vocabulary size too high" in error[0]
    assert not (tmp_path / "m").exists()
