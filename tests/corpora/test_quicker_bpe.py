"""The quicker steps learn what subword-nmt learns by itself."""

from __future__ import annotations

import io
import random

import pytest
from subword_nmt import learn_bpe

from diet_mt.corpora.quicker_bpe import _joined, quicker

from .wmt18 import sentences


def _learn(words: list[str], merges: int) -> str:
    codes = io.StringIO()
    learn_bpe.learn_bpe(words, codes, merges, is_dict=True)
    return codes.getvalue()


def _random_words(seed: int) -> list[str]:
    """Words of very few letters: many repetitions, overlaps, ties and ways to the same piece."""
    draw = random.Random(seed)
    words = {"".join(draw.choices("aab\\.", k=draw.randint(1, 9))) for _ in range(300)}
    return [f"{word} {draw.randint(1, 40)}" for word in sorted(words)]


@pytest.mark.parametrize("seed", range(5))
def test_the_codes_of_odd_words_are_the_same(seed: int) -> None:
    words = _random_words(seed)
    plain = _learn(words, 250)
    with quicker():
        assert _learn(words, 250) == plain
    assert plain.count("\n") > 100


def test_the_codes_of_sentences_are_the_same() -> None:
    text = " ".join(s[lang] for s in sentences(300, seed=1) for lang in ("en", "de", "cs"))
    words = [f"{word} {text.count(word)}" for word in sorted(set(text.split()))]
    plain = _learn(words, 1000)
    with quicker():
        assert _learn(words, 1000) == plain


def test_it_ends_with_the_context() -> None:
    before = learn_bpe.replace_pair
    with quicker():
        assert learn_bpe.replace_pair is not before
    with quicker(), pytest.raises(AttributeError):
        learn_bpe.learn_bpe(None, None, 1)
    assert learn_bpe.replace_pair is before
    assert not hasattr(learn_bpe, "max")


@pytest.mark.parametrize(
    ("word", "joined"),
    [("aaa", "aa a"), ("aaaa", "aa aa"), ("baab", "b aa b"), ("aba", "a b a"), ("a", "a")],
)
def test_pairs_are_joined_from_the_left(word: str, joined: str) -> None:
    assert _joined(tuple(word), "a", "a") == tuple(joined.split())
