"""Sentences from the SGML files in which WMT publishes its development and test sets.

They look like ``<seg id="7">Gerd &amp; Co.</seg>``, one sentence each. SGML in name only: no parser
reads all of them, so this looks for the segments and nothing else, as SacreBLEU does.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import UserError
from ..files import opened

_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)
_BEGINNING = re.compile(r"<seg\b", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#(\d+)|#x([0-9a-fA-F]+)|(amp|lt|gt|quot|apos));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


def read_segments(path: Path) -> list[str]:
    """The sentences of a file, entities replaced, each run of white space as one space.

    Raises:
        UserError: the file cannot be read, is not UTF-8, holds no segment, one that does not end,
            or an empty one.
    """
    try:
        with opened(path) as file:
            text = file.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not valid UTF-8 (byte {error.start})") from None
    sentences = [" ".join(unescape(raw).split()) for raw in _SEGMENT.findall(text)]
    begun = len(_BEGINNING.findall(text))
    if not sentences or begun != len(sentences):
        raise UserError(f"{path}: {begun} segments begin and {len(sentences)} end; not a whole set")
    if "" in sentences:
        raise UserError(f"{path}, segment {sentences.index('') + 1}: empty")
    return sentences


def unescape(text: str) -> str:
    """Replaces XML's entities, once: ``&amp;lt;`` becomes ``&lt;``."""
    return _ENTITY.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    decimal, hexadecimal, name = match.groups()
    if name:
        return _NAMED[name]
    return chr(int(decimal) if decimal else int(hexadecimal, 16))
