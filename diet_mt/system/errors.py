"""Errors caused by user input."""

import re
from collections.abc import Callable

_LONGEST = 800  # characters of a message
one_liners: list[Callable[[BaseException], str | None]] = []  # of errors that other packages raise


def printable(text: str, limit: int = _LONGEST) -> str:
    """``text`` on one line, for terminals; the middle of more than ``limit`` characters is cut.

    Control and format characters and lone surrogates are escaped: they could move the cursor or
    reverse the line.
    """
    text = re.sub(r"\s*[\t\n\r]\s*", " ", text)
    if len(text) > limit:
        text = f"{text[: limit - limit // 3]} ... {text[-(limit // 3) :]}"
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def as_utf8(text: str) -> str:
    """``text`` with lone surrogates, as in file names that are not UTF-8, escaped: ``\\udce9``."""
    return text.encode("utf-8", "backslashreplace").decode()


class UserError(ValueError):
    """An error in the user's input; the message names the error and its remedy."""

    def __str__(self) -> str:
        return printable(super().__str__())
