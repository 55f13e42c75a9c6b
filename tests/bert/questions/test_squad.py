"""Questions are read as they are, or refused with the file and the question."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from diet_mt.bert.questions.squad import Answer, read_squad
from diet_mt.errors import UserError

from .made_up import article, entry, write_squad

CONTEXT = "Der Fluss fließt 😀 nach Süden, nach Süden."


def test_all_that_a_file_says(tmp_path: Path) -> None:
    asked = entry("a", " wohin? ", CONTEXT, "nach Süden", "Süden")
    never = entry("b", "wann?", CONTEXT, is_impossible=True)
    unlabelled = {"id": "c", "question": "warum?"}
    path = write_squad(
        tmp_path / "q.json", article(CONTEXT, asked, never), article("x", unlabelled)
    )
    first, second, third = read_squad(path)
    assert (first.id, first.text, first.context) == ("a", " wohin? ", CONTEXT)
    # Characters are counted, not bytes and not halves of characters.
    assert first.answers == (Answer("nach Süden", 19), Answer("Süden", 24))
    assert first.answers[0].end == 29
    assert first.golds == ["nach Süden", "Süden"]
    assert (second.impossible, second.golds, second.has_gold) == (True, [""], True)
    assert (third.answers, third.impossible, third.has_gold) == ((), False, False)
    packed = tmp_path / "q.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_squad(packed) == [first, second, third]
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + path.read_bytes()))  # a BOM
    assert read_squad(packed) == [first, second, third]


def _wrong(**changes: Any) -> dict[str, Any]:
    return article("one two", {**entry("q7", "what?", "one two", "two"), **changes})


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({}, "no list 'data'"),
        ([], "no list 'data'"),
        ({"data": []}, "no questions"),
        ({"data": [{"title": "x"}]}, "article 1: no list 'paragraphs'"),
        ({"data": [{"paragraphs": [{"qas": []}]}]}, "paragraph 1: 'context' is None"),
        ({"data": [{"paragraphs": [{"context": "a", "qas": [{}]}]}]}, "without an 'id'"),
        ({"data": [_wrong(question="")]}, "question q7: 'question' is ''"),
        ({"data": [_wrong(answers="two")]}, "question q7: no list 'answers'"),
        ({"data": [_wrong(answers=[{"text": "two"}])]}, "q7: 'answer_start' is None"),
        (
            {"data": [_wrong(answers=[{"text": "two", "answer_start": 3}])]},
            "q7: answer 'two' does not stand at character 3",
        ),
        (
            {"data": [_wrong(answers=[{"text": "two", "answer_start": -3}])]},
            "q7: answer 'two' does not stand at character -3",
        ),
        ({"data": [_wrong(answers=[{"text": " ", "answer_start": 3}])]}, "q7: 'text' is ' '"),
        ({"data": [_wrong(is_impossible="no")]}, "q7: 'is_impossible' is 'no'"),
        ({"data": [_wrong(is_impossible=True)]}, "q7: 'is_impossible' is true, but it has answers"),
        ({"data": [_wrong(question="\ud800?")]}, "q7: 'question' has half of a character"),
        ({"data": [_wrong(id="\ud800")]}, "paragraph 1: 'id' has half of a character"),
        ({"data": [_wrong(), _wrong()]}, "q7: there are two with this id"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, content: Any, complaint: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(content))
    with pytest.raises(UserError) as error:
        read_squad(path)
    assert str(error.value).startswith(str(path))
    assert complaint in str(error.value)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b'{"data": [', "not JSON"),
        (b'{"data": "\xff"}', "not valid UTF-8 (byte 10)"),
        (gzip.compress(b'{"data": []}', mtime=0)[:20], "cannot be read"),
        (None, "cannot be read"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes | None, complaint: str) -> None:
    path = tmp_path / "damaged.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=r"damaged\.json") as error:
        read_squad(path)
    assert complaint in str(error.value)
