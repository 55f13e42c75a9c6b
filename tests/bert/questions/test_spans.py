"""Characters -> pieces -> characters, with both kinds of tokenizer, in many scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.bert.questions.spans import columns_in, extents_of, pieces_at, text_at
from diet_mt.bert.tokenizer import Tokenizer, WordPiece, load

from ..tokenizers_made import KINDS, write_tokenizer

# Text, and an answer that begins and ends where words do. Accents composed and not, letters that
# change their length as small ones, vowel signs, white space of several kinds.
WHOLE = [
    ("the old woman reads the book", "old woman"),
    ("  the old  woman", "the old  woman"),
    ("the book.", "book"),
    ("In 1857, (nearly) all; \u201cquoted\u201d", "nearly"),
    ("cafe\u0301 nai\u0308ve re\u0301sume\u0301 end", "nai\u0308ve re\u0301sume\u0301"),
    (
        "\u062d\u062f\u064e\u062b \u0623\u0648\u0651\u0644\u0627\u064b \u0647\u0646\u0627",
        "\u0623\u0648\u0651\u0644\u0627\u064b",
    ),
    ("\u0628\u064a\u062a \u0643\u0628\u064a\u0631 \u0647\u0646\u0627", "\u0643\u0628\u064a\u0631"),
    (
        "\u0939\u093f\u0928\u094d\u0926\u0940 \u092d\u093e\u0937\u093e \u0939\u0948",
        "\u092d\u093e\u0937\u093e",
    ),
    ("a\u00a0b\u3000the\u2028book", "the"),
    ("İstanbul ẞ ﬁn the", "ẞ"),
    ("\ufeffthe book", "the"),
]


@pytest.fixture(scope="module", params=KINDS)
def tokens(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder: Path = tmp_path_factory.mktemp("spans") / "made"
    return load(write_tokenizer(folder, request.param))


def back(tokens: Tokenizer, context: str, begin: int, end: int) -> str:
    extents = extents_of(context, tokens.spans(context))
    held = pieces_at(extents, begin, end)
    assert held is not None
    return text_at(context, extents[held[0]][0], extents[held[1]][1])


@pytest.mark.parametrize(("context", "gold"), WHOLE)
def test_words_come_back(tokens: Tokenizer, context: str, gold: str) -> None:
    begin = context.index(gold)
    end = begin + len(gold)
    found = back(tokens, context, begin, end)
    if isinstance(tokens, WordPiece):
        assert found == gold
    else:
        # SentencePiece may keep punctuation, and characters that it does not know, with a word.
        while not context[begin - 1 : begin].isspace() and begin:
            begin -= 1
        while not context[end : end + 1].isspace() and end < len(context):
            end += 1
        assert gold in found
        assert found in context[begin:end]


def test_characters_that_stand_alone_come_back(tmp_path: Path) -> None:
    tokens = load(write_tokenizer(tmp_path / "made", KINDS[0]))
    context = "中国的首都是北京。"
    assert back(tokens, context, 6, 8) == "北京"
    context = "the book (1857), in \u201cLondon\u201d."
    for gold in ("1857", "London", "book (1857)"):
        begin = context.index(gold)
        assert back(tokens, context, begin, begin + len(gold)) == gold


def test_an_answer_inside_a_word_comes_back_with_its_piece() -> None:
    context = "unbelievable news"
    spans = [("un", 0, 2), ("believable", 2, 12), ("news", 13, 17)]
    extents = extents_of(context, spans)
    held = pieces_at(extents, 4, 8)
    assert held == (1, 1)
    assert text_at(context, *extents[1]) == "believable"
    assert pieces_at(extents, 1, 14) == (0, 2)
    assert pieces_at(extents, 12, 13) is None


def test_white_space_and_marks() -> None:
    # U+2581 alone stands for white space; a piece may take the space before it along.
    context = " re\u0301 b"
    spans = [("\u2581", 0, 1), ("re", 1, 3), ("\u2581b", 4, 6)]
    assert extents_of(context, spans) == [(1, 1), (1, 4), (5, 6)]
    # A mark that has a piece of its own stays with it.
    assert extents_of("e\u0301", [("e", 0, 1), ("x", 1, 2)]) == [(0, 1), (1, 2)]
    assert extents_of("e\u0301\u0323", [("e", 0, 1)]) == [(0, 3)]


def test_where_an_answer_is_in_a_window() -> None:
    # Pieces 5 to 7 of the context; windows of pieces, with the context from column 4 on.
    assert columns_in((5, 7), (0, 10), 4) == (9, 11)
    assert columns_in((5, 7), (5, 8), 4) == (4, 6)
    assert columns_in((5, 7), (5, 7), 4) == (0, 0)
    assert columns_in((5, 7), (6, 12), 4) == (0, 0)
    assert columns_in(None, (0, 10), 4) == (0, 0)
