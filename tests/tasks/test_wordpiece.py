"""``--bpe diet_wordpiece``, built as fairseq builds it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fairseq.data import encoders
from omegaconf import OmegaConf

from diet_mt.bert.tokenizer import WORDPIECE, load
from diet_mt.encoders import WordPieceConfig
from diet_mt.system.errors import UserError

from ..bert.made import write_tokenizer


def build(folder: str) -> Any:
    cfg = WordPieceConfig(_name="diet_wordpiece", wordpiece_folder=folder)
    return encoders.build_bpe(OmegaConf.structured(cfg))


def test_fairseq_finds_it_and_its_option(tmp_path: Path) -> None:
    folder = write_tokenizer(tmp_path / "made", WORDPIECE)
    bpe = build(str(folder))
    text = "The old woman reads"
    assert bpe.encode(text).split() == load(folder).pieces(text)
    assert bpe.decode(bpe.encode(text)) == text.lower()
    begin = [bpe.is_beginning_of_word(piece) for piece in bpe.encode("unreadable reads").split()]
    assert sum(begin) == 2
    assert begin[0]
    assert bpe.is_beginning_of_word("<mask>")


def test_without_a_folder_it_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--wordpiece-folder"):
        build("")
    with pytest.raises(UserError, match=str(tmp_path)):
        build(str(tmp_path))
