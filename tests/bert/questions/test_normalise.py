"""What MLQA takes for the same answer, worked out by hand from its published evaluation."""

from __future__ import annotations

import pytest

from diet_mt.bert.questions.normalise import LANGUAGES, words
from diet_mt.errors import UserError


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "The  Cat, a DOG!", "cat dog"),
        ("en", "an apple-tree $5", "appletree 5"),
        ("en", "atheist theatre", "atheist theatre"),
        ("en", "\u201cquoted\u201d — dash", "quoted dash"),
        ("de", "Der Hund und eine Katze", "hund und katze"),
        ("de", "an der Wand", "an wand"),
        ("de", "dem, DES; einem einer", ""),
        ("es", "¿Los niños y la niña?", "niños y niña"),
        ("es", "del un uno", "del uno"),
        # As published: also within a word.
        ("ar", "الحرب العالمية", "حرب ع مية"),
        ("ar", "مقال طويل", "مق طويل"),
        ("ar", "ما هذا؟", "ما هذا"),
        ("hi", "यह एक घर है।", "यह एक घर है"),
        ("vi", "Cái bàn của Lan", "bàn lan"),
        ("zh", "南京大学 ABC 1。", "南 京 大 学 abc 1"),
        ("zh", "《红楼梦》，1791年", "红 楼 梦 1791 年"),
        # As published: only the basic range is split.
        ("zh", "\U00020000\U00020001中", "\U00020000\U00020001 中"),
    ],
)
def test_words(language: str, text: str, expected: str) -> None:
    assert words(text, language) == expected.split()


def test_a_language_without_rules_is_refused() -> None:
    with pytest.raises(UserError, match="language 'fi': MLQA's scores are defined for ar, de, en"):
        words("talo", "fi")
    assert all(words("", language) == [] for language in LANGUAGES)
