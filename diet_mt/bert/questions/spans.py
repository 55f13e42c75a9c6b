"""Characters of a context <-> its subword pieces."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

# Begin and end, in characters of the context, of what a piece stands for.
Extent = tuple[int, int]


def extents_of(context: str, spans: Sequence[tuple[str, int, int]]) -> list[Extent]:
    """The extent of each piece without the white space around it, and with the marks behind it.

    A tokenizer that takes accents away says that its pieces end before them, but a letter without
    the vowel sign that follows it is not what the text says.

    Args:
        spans: Pieces with begin and end, from a tokenizer. A piece that stands for white space
            alone gets an empty extent, behind it.
    """
    found = []
    for number, (_, begin, end) in enumerate(spans):
        while begin < end and context[begin].isspace():
            begin += 1
        while begin < end and context[end - 1].isspace():
            end -= 1
        limit = spans[number + 1][1] if number + 1 < len(spans) else len(context)
        while begin < end < limit and unicodedata.category(context[end]).startswith("M"):
            end += 1
        found.append((begin, end))
    return found


def pieces_at(extents: Sequence[Extent], begin: int, end: int) -> tuple[int, int] | None:
    """First and last piece that stand for some of the characters from ``begin`` to before ``end``.

    None where no piece does: the tokenizer drops these characters.
    """
    hits = [number for number, (b, e) in enumerate(extents) if b < end and e > begin]
    return (hits[0], hits[-1]) if hits else None


def text_at(context: str, begin: int, end: int) -> str:
    """The characters from ``begin`` to before ``end``, without white space around them."""
    return context[begin:end].strip()


def columns_in(
    span: tuple[int, int] | None, window: tuple[int, int], context_column: int
) -> tuple[int, int]:
    """Columns, within a window, of the first and the last piece of an answer.

    (0, 0), which is <s>, where the window does not hold all of the answer or there is none. So
    Devlin et al.'s published code trains: a window says that it has no answer, which keeps the
    windows without one from being scored higher than the one that has it, since scores of windows
    are compared when they are merged. A part of an answer would be a wrong answer.

    Args:
        span: First and last piece of the answer, counted from the start of the context.
        window: Begin and end of the window in pieces of the context.
        context_column: Where the context begins in the window.
    """
    if span is None or span[0] < window[0] or span[1] >= window[1]:
        return 0, 0
    shift = context_column - window[0]
    return span[0] + shift, span[1] + shift
