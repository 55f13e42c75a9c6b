"""fairseq's dictionaries read without fairseq: the same numbers, and one error line for damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairseq.data import Dictionary

from diet_mt.corpora.binarized import dictionary_size
from diet_mt.corpora.dictionary import read_dictionary, write_dictionary
from diet_mt.errors import UserError

OVERWRITES = "a 3\n\u00fc 2\n<unk> 1 #fairseq:overwrite\na 1 #fairseq:overwrite\nlast 0\n"


@pytest.mark.parametrize("text", ["", "a b 1\n\u3000 7\n", OVERWRITES])
def test_numbers_and_size_are_those_of_fairseq(tmp_path: Path, text: str) -> None:
    path = tmp_path / "dict.txt"
    path.write_text(text, encoding="utf-8")
    theirs = Dictionary.load(str(path))
    assert read_dictionary(path) == theirs.indices
    assert dictionary_size(path) == len(theirs)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "dict.txt"
    write_dictionary(["x", "y"], path)
    assert list(read_dictionary(path)) == ["<s>", "<pad>", "</s>", "<unk>", "x", "y"] + [
        f"madeupword{number:04d}" for number in range(2)
    ]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"word\n", "line 1: no word with its count"),
        (b"word x\n", "line 1: no word with its count"),
        (b" 1\n", "line 1: no word with its count"),
        (b"a 1\nb 1", "line 2: no word with its count"),  # cut
        (b"a 1\na 1\n", "line 2: the same word again, 'a'"),
        (b"<s> 1\n", "line 1: the same word again, '<s>'"),
        (b"a 1\n\xff\xfe 1\n", "line 2: not valid UTF-8"),
    ],
)
@pytest.mark.parametrize("read", [read_dictionary, dictionary_size])
def test_a_damaged_dictionary_is_refused(
    tmp_path: Path, read: object, content: bytes, complaint: str
) -> None:
    path = tmp_path / "dict.txt"
    path.write_bytes(content)
    assert callable(read)
    with pytest.raises(UserError, match=f"dict.txt, {complaint}"):
        read(path)
