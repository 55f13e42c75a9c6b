"""Sentences and pairs as subwords, cut to the model's length."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.bert.labelled import Example, write_split
from diet_mt.bert.pair_pieces import shortened, split_folder
from diet_mt.bert.tokenizer import WORDPIECE

from .tokenizers_made import write_tokenizer


def popped(first: list[str], second: list[str], room: int) -> list[list[str]]:
    """BERT's way, word by word: the longer one loses its last; of equal ones the second."""
    first, second = list(first), list(second)
    while len(first) + len(second) > room:
        (first if len(first) > len(second) else second).pop()
    return [first, second]


@pytest.mark.parametrize("max_length", [6, 7, 10, 11, 20, 40])
def test_pairs_are_cut_as_bert_cuts_them(max_length: int) -> None:
    for one in range(1, 14):
        for two in range(1, 14):
            first, second = [f"a{n}" for n in range(one)], [f"b{n}" for n in range(two)]
            expected = popped(first, second, max_length - 4)
            assert shortened([first, second], max_length) == expected


def test_a_single_sentence_keeps_its_beginning() -> None:
    assert shortened([["a", "b", "c", "d"]], 5) == [["a", "b", "c"]]
    assert shortened([["a", "b", "c"]], 5) == [["a", "b", "c"]]


def test_every_split_is_split_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vocabulary = write_tokenizer(tmp_path / "vocabulary", WORDPIECE)
    # U+2028 and U+0085 end a line for str.splitlines, not here.
    examples = [Example("0", ("one\u2028two", "three"), "1"), Example("1", ("", "e " * 40), "0")]
    for split in ("train", "test"):
        write_split(tmp_path / "raw", split, examples)
    given = (tmp_path / "raw", tmp_path / "out", vocabulary, 20, 1)
    split_folder(*given)
    said = capsys.readouterr().err
    assert "train: 1 examples were longer than 20 subwords and cut" in said
    assert "of them unknown" in said
    for split in ("train", "test"):
        first, second = (
            (tmp_path / "out" / f"{split}.input{n}").read_text(encoding="utf-8").split("\n")
            for n in (0, 1)
        )
        assert len(first) == len(second) == 3
        assert "".join(first[0].split()).replace("##", "") == "onetwo"
        assert (first[1], len(second[1].split())) == ("", 16)
    split_folder(*given)
    assert "train: done before" in capsys.readouterr().err
