"""Normalization of the characters of a line, with counts of what was mended.

Canonical composition (NFC); no byte order marks, control, zero-width or private characters; every
run of white space, whatever its kind, one plain space, none at the ends; Windows-1252 read as
Latin-1 is corrected.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

VERSION = 1  # of the rules below, for records: raised where a line would come out otherwise
BYTE_ORDER_MARK = "byte order marks"
CARRIAGE_RETURN = "Windows line ends"
WINDOWS = "Windows-1252 characters"
CONTROL = "control characters"
INVISIBLE = "zero-width and private characters"
COMPOSED = "not in NFC"
SPACES = "unusual white space"
MENDED = (BYTE_ORDER_MARK, CARRIAGE_RETURN, WINDOWS, CONTROL, INVISIBLE, COMPOSED, SPACES)

# Where a corpus has one of these control characters, somebody has read Windows-1252 as Latin-1:
# U+0084 and U+0093 stand for quotation marks, U+0085 for an ellipsis and not for a line end.
_WINDOWS = re.compile("[\x80-\x9f]")
_MEANT = {code: bytes([code]).decode("cp1252", "ignore") for code in range(0x80, 0xA0)}
# The rest of Unicode's Cc, without those that are white space, which become a space.
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f]")
# Its Cf (soft hyphens, joiners, marks of direction, tags), Co (private use) and noncharacters.
_INVISIBLE = re.compile(
    "[\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\ufdd0-\ufdef\ufffe\uffff\ue000-\uf8ff"
    "\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0001\U000e0020-\U000e007f\U000f0000-\U000ffffd\U00100000-\U0010fffd]"
)


def tidy(line: str, mended: Counter[str]) -> str:
    """The normalized line; counts in ``mended``, under the names above, what was changed.

    Args:
        line: Without its ``\\n``.
    """
    if line.startswith("\ufeff"):
        mended[BYTE_ORDER_MARK] += 1
        line = line[1:]
    if line.endswith("\r"):
        mended[CARRIAGE_RETURN] += 1
        line = line[:-1]
    if _CONTROL.search(line):
        mended[CONTROL] += 1
        line = _CONTROL.sub("", line)
    if not line.isascii():
        if _WINDOWS.search(line):
            mended[WINDOWS] += 1
            line = line.translate(_MEANT)
        if _INVISIBLE.search(line):
            mended[INVISIBLE] += 1
            line = _INVISIBLE.sub("", line)
        if not unicodedata.is_normalized("NFC", line):
            mended[COMPOSED] += 1
            line = unicodedata.normalize("NFC", line)
    plain = " ".join(line.split())
    mended[SPACES] += plain != line
    return plain


def tidy_sources(lines: Iterable[str]) -> tuple[list[str], int]:
    """Source lines of a validation or test set, normalized as those of training, and the number of
    lines changed. A line that would be empty stays as it is, for its reference.
    """
    given = list(lines)
    tidied = [tidy(line, Counter()) or line for line in given]
    return tidied, sum(map(str.__ne__, given, tidied))
