"""Model output back to text."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from diet_mt.corpora import bpe, detokenize, moses


class _Standard:
    """A standard stream of bytes."""

    def __init__(self, content: bytes = b"") -> None:
        self.buffer = io.BytesIO(content)


def _run(monkeypatch: pytest.MonkeyPatch, content: bytes, *arguments: str) -> tuple[int, bytes]:
    out = _Standard()
    monkeypatch.setattr(sys, "stdin", _Standard(content))
    monkeypatch.setattr(sys, "stdout", out)
    status = detokenize.main([*arguments])
    return status, out.buffer.getvalue()


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


def test_lines_keep_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    status, out = _run(monkeypatch, "ei@@ ns .\n\nz\u2028wei\n<unk> drei".encode(), "de")
    assert status == 0
    assert out.decode().split("\n") == ["eins.", "", "z wei", "<unk> drei", ""]


def test_sentencepiece_leaves_nothing_to_detokenize(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spaces and signs are those of the text itself, and @@ is two characters of it."""
    line = '\u2581Er \u2581sag t : \u2581" Ja !" \u2581@@ \u2581&apos;'
    assert detokenize.to_text(line, "de", "spm") == 'Er sagt: "Ja!" @@ &apos;'
    status, out = _run(monkeypatch, f"{line}\n\n".encode(), "de", "--subwords", "spm")
    assert (status, out.decode()) == (0, 'Er sagt: "Ja!" @@ &apos;\n\n')


def test_invalid_text_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _ = _run(monkeypatch, b"gut\n\xff\n", "de")
    assert status == 2
    assert capsys.readouterr().err == "error: standard input, line 2: not valid UTF-8\n"
