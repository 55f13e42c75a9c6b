"""Model output back to text."""

from __future__ import annotations

from pathlib import Path

from diet_mt.corpora import bpe, detokenize, moses


def test_pieces_are_joined_and_tokens_attached() -> None:
    line = "Der grün @-@ wei@@ ße Hu@@ nd bel@@ lt , &quot; laut &quot; ."
    assert detokenize.to_text(line, "de", "bpe") == 'Der grün-weiße Hund bellt, "laut".'
    assert (
        detokenize.to_text("It is the dog &apos;s b@@ one .", "en", "bpe")
        == "It is the dog's bone."
    )


def test_every_stage_back_and_forth(tmp_path: Path) -> None:
    text = 'Die wohl-bekannte Frau ruft ihn an, weil sie "ihn" braucht!'
    tokens = moses.tokenize(text, "de")
    (tmp_path / "train").write_text(tokens + "\n" + tokens + "\n", encoding="utf-8")
    bpe.learn([tmp_path / "train"], tmp_path / "codes", 10)
    (split,) = bpe.split([tokens], tmp_path / "codes")
    assert "@@ " in split
    assert detokenize.to_text(split, "de", "bpe") == text


def test_every_line_has_a_text(tmp_path: Path) -> None:
    lines = ("ei@@ ns .", "", "z\u2028wei", "<unk> drei")
    found = [detokenize.to_text(line, "de", "bpe") for line in lines]
    assert found == ["eins.", "", "z wei", "<unk> drei"]


def test_sentencepiece_leaves_nothing_to_detokenize() -> None:
    """Spaces and signs are those of the text itself, and @@ is two characters of it."""
    line = '\u2581Er \u2581sag t : \u2581" Ja !" \u2581@@ \u2581&apos;'
    assert detokenize.to_text(line, "de", "spm") == 'Er sagt: "Ja!" @@ &apos;'
    assert detokenize.to_text("", "de", "spm") == ""
