"""The two kinds of subwords."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.corpora import bpe, moses, pieces, subwords
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


@pytest.mark.parametrize("kind", ["bpe", "spm"])
def test_learning_and_splitting(corpus: Path, tmp_path: Path, kind: str) -> None:
    model, files = tmp_path / "model", [corpus / "train.en", corpus / "train.de"]
    if kind == "bpe":
        bpe.learn(files, model, 100)
    else:
        pieces.learn(files, model, 120)
    for workers in (1, 2):
        (tmp_path / f"out{workers}").mkdir()
        for file in corpus.iterdir():
            out = tmp_path / f"out{workers}" / file.name
            subwords.split_file(kind, model, file, out, workers)
    for split in SPLITS:
        for lang in ("en", "de"):
            name = f"{split}.{lang}"
            split_text = (tmp_path / "out1" / name).read_text(encoding="utf-8")
            assert split_text == (tmp_path / "out2" / name).read_text(encoding="utf-8")
            text = (corpus / name).read_text(encoding="utf-8")
            assert split_text.count(" ") > text.count(" ")
            joined = [subwords.join(line, kind) for line in split_text.split("\n")]
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


def test_pieces_are_joined_and_tokens_attached() -> None:
    line = "Der grün @-@ wei@@ ße Hu@@ nd bel@@ lt , &quot; laut &quot; ."
    assert subwords.to_text(line, "de", "bpe") == 'Der grün-weiße Hund bellt, "laut".'
    assert (
        subwords.to_text("It is the dog &apos;s b@@ one .", "en", "bpe") == "It is the dog's bone."
    )


def test_every_stage_back_and_forth(tmp_path: Path) -> None:
    text = 'Die wohl-bekannte Frau ruft ihn an, weil sie "ihn" braucht!'
    tokens = moses.tokenize(text, "de")
    (tmp_path / "train").write_text(tokens + "\n" + tokens + "\n", encoding="utf-8")
    bpe.learn([tmp_path / "train"], tmp_path / "codes", 10)
    (split,) = bpe.split([tokens], tmp_path / "codes")
    assert "@@ " in split
    assert subwords.to_text(split, "de", "bpe") == text


def test_every_line_has_a_text(tmp_path: Path) -> None:
    lines = ("ei@@ ns .", "", "z\u2028wei", "<unk> drei")
    found = [subwords.to_text(line, "de", "bpe") for line in lines]
    assert found == ["eins.", "", "z wei", "<unk> drei"]


def test_sentencepiece_leaves_nothing_to_detokenize() -> None:
    """Spaces and signs are those of the text itself, and @@ is two characters of it."""
    line = '\u2581Er \u2581sag t : \u2581" Ja !" \u2581@@ \u2581&apos;'
    assert subwords.to_text(line, "de", "spm") == 'Er sagt: "Ja!" @@ &apos;'
    assert subwords.to_text("", "de", "spm") == ""
