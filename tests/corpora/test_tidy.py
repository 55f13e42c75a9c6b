"""Characters in order."""

from __future__ import annotations

import sys
import unicodedata
from collections import Counter

import pytest

from diet_mt.corpora import tidy


def _tidy(line: str) -> tuple[str, dict[str, int]]:
    mended: Counter[str] = Counter()
    return tidy.tidy(line, mended), {name: count for name, count in mended.items() if count}


@pytest.mark.parametrize(
    ("line", "plain", "mended"),
    [
        ("Ein Satz, wie er ist.", "Ein Satz, wie er ist.", ()),
        ("„Größe“ – 10 €", "„Größe“ – 10 €", ()),
        ("\ufeffAnfang", "Anfang", (tidy.BYTE_ORDER_MARK,)),
        ("Ende\r", "Ende", (tidy.CARRIAGE_RETURN,)),
        ("a\x00b\x7fc\x1bd", "abcd", (tidy.CONTROL,)),
        ("\x84Ja\x93 \x96 it\x92s\x85\x81", "„Ja“ – it’s…", (tidy.WINDOWS,)),
        ("Gar\xadten\u200b\u200e", "Garten", (tidy.INVISIBLE,)),
        ("a\ufeffb\ue000c", "abc", (tidy.INVISIBLE,)),
        ("u\u0308ber", "über", (tidy.COMPOSED,)),
        ("  a \t b\u00a0c\u2003d ", "a b c d", (tidy.SPACES,)),
        ("a\u2028c\u2029d\x0ce\x1cf", "a c d e f", (tidy.SPACES,)),
        ("\ufeff\r", "", (tidy.BYTE_ORDER_MARK, tidy.CARRIAGE_RETURN)),
        ("\u3000", "", (tidy.SPACES,)),
    ],
)
def test_what_is_mended_and_counted(line: str, plain: str, mended: tuple[str, ...]) -> None:
    assert _tidy(line) == (plain, dict.fromkeys(mended, 1))
    assert _tidy(plain) == (plain, {})


def test_every_character_by_its_category() -> None:
    """All of Unicode: what has no shape goes, white space becomes a space, the rest stays."""
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        category = unicodedata.category(character)
        if category in ("Cs", "Cn"):  # not in UTF-8; not assigned
            continue
        plain, _ = _tidy(f"a{character}b")
        if 0x80 <= code < 0xA0:
            assert plain == f"a{bytes([code]).decode('cp1252', 'ignore')}b", hex(code)
        elif character.isspace():
            assert plain == "a b", hex(code)
        elif category in ("Cc", "Cf", "Co"):
            assert plain == "ab", hex(code)
        else:
            assert plain == unicodedata.normalize("NFC", f"a{character}b"), hex(code)


def test_source_lines_keep_their_number() -> None:
    lines = ["as it is", "zero\u200bwidth", "\u200b", "nbsp\u00a0too "]
    found = tidy.tidy_sources(iter(lines))
    assert found == (["as it is", "zerowidth", "\u200b", "nbsp too"], 2)
