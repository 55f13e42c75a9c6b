"""Messages are one printable line of bounded length, whatever they quote."""

from __future__ import annotations

import pytest

from diet_mt.errors import UserError, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ä 漢 two  spaces", "plain ä 漢 two  spaces"),
        ("a\n   b\tc", "a b c"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("\u202egnp.exe\u2066", r"\u202egnp.exe\u2066"),
        ("\x9b2J\u2028", r"\x9b2J\u2028"),
        ("not\udcffutf8", r"not\udcffutf8"),
        ("a" * 1000 + "end", "a" * 534 + " ... " + "a" * 263 + "end"),
    ],
)
def test_a_message_is_printable(text: str, shown: str) -> None:
    assert str(UserError(text)) == shown


def test_a_limit_holds_both_ends() -> None:
    assert printable("0123456789", 6) == "0123 ... 89"
