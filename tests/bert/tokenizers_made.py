"""Small tokenizers of both kinds, learnt from the same made-up sentences."""

from __future__ import annotations

from pathlib import Path

from diet_mt.bert import wordpiece
from diet_mt.bert.tokenizer import SENTENCEPIECE, WORDPIECE
from diet_mt.corpora import pieces

from ..corpora.wmt18 import sentences

KINDS = (WORDPIECE, SENTENCEPIECE)


def write_tokenizer(folder: Path, kind: str, *, size: int = 130, cased: bool = False) -> Path:
    """Learns a tokenizer of this kind into ``folder``, which is made, and returns the folder."""
    folder.mkdir()
    text = folder / "text"
    lines = (f"{pair[lang]}\n" for pair in sentences(200, seed=3) for lang in ("en", "de"))
    text.write_text("".join(lines), encoding="utf-8")
    if kind == WORDPIECE:
        wordpiece.learn([text], folder / kind, size, cased=cased)
    else:
        pieces.learn([text], folder / kind, size)
    text.unlink()
    return folder
