"""What a picture or a table was made of, kept in the file itself: the path of each file of rows,
seen from it, with its SHA-256, and the SHA-256 of all else in the file. So it can be told whether
either has changed since, without what else it took to make it.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

from .errors import UserError
from .files import sha256

# The same in every format, so that all are read alike.
_MARK = re.compile(rb"made of ((?:[^\s;<>]+ [0-9a-f]{64};)+) itself ([0-9a-f]{64});")
_PNG = b"\x89PNG\r\n\x1a\n"
_KEYWORD = b"tEXtSource\0"
_PNG_END = len(b"....IEND....")


def marked(content: bytes, file: Path, rows: Iterable[Path]) -> bytes:
    """``content`` of ``file``, a PNG or text in which <!-- --> is a comment, with its mark."""
    listed = "".join(f"{_quoted(path, file)} {sha256(path)};" for path in sorted(rows))
    return _with(
        content, f"made of {listed} itself {hashlib.sha256(content).hexdigest()};".encode()
    )


def _with(content: bytes, mark: bytes) -> bytes:
    if not content.startswith(_PNG):
        return content + b"<!-- " + mark + b" -->\n"
    # A chunk of text before the last one: Portable Network Graphics, third edition, section 11.3.3.
    chunk = _KEYWORD + mark
    length, checksum = (n.to_bytes(4, "big") for n in (len(mark) + 7, zlib.crc32(chunk)))
    return content[:-_PNG_END] + length + chunk + checksum + content[-_PNG_END:]


def _quoted(path: Path, file: Path) -> str:
    """``path`` as it is seen from ``file``; without --, which a comment of XML must not have."""
    seen = os.path.relpath(path.resolve(), file.parent.resolve())
    return quote(os.fsencode(seen)).replace("--", "%2D%2D")


def _mark_in(content: bytes) -> re.Match[bytes] | None:
    """The last one: what a row says may look like one, too."""
    return max(_MARK.finditer(content), key=re.Match.start, default=None)


def _without(content: bytes, mark: re.Match[bytes]) -> bytes:
    """The inverse of :func:`_with`."""
    start, end = mark.span()
    if content.startswith(_PNG):
        return content[: start - len(_KEYWORD) - 4] + content[end + 4 :]
    return content[: start - len("<!-- ")] + content[end + len(" -->\n") :]


def has_mark(file: Path) -> bool:
    """Whether ``file`` says what it was made of; False where there is none."""
    return file.is_file() and _mark_in(file.read_bytes()) is not None


def check_mark(file: Path) -> None:
    """Raises UserError unless ``file`` is as it was made, and the rows that it names, or in the
    folder of its name, are those it was made of. What else was read (references) is not looked at.
    """
    if not file.is_file():
        raise UserError(f"{file}: no such file")
    content = file.read_bytes()
    found = _mark_in(content)
    if not found:
        raise UserError(
            f"{file}: does not say of which rows it was made, as what diet-mt lengths, "
            "figures and bench curves draw does; make it again by its command"
        )
    drawn = _without(content, found)
    same = hashlib.sha256(drawn).hexdigest().encode() == found[2]
    if not same or _with(drawn, found[0]) != content:
        raise UserError(f"{file}: has changed since it was made; make it again by its command")
    for entry in found[1].decode().split(";")[:-1]:
        name, checksum = entry.split()
        own = os.fsdecode(unquote_to_bytes(name))
        places = [file.parent / own, file.with_suffix("") / own]
        rows = [path for path in places if path.is_file()]
        if not rows:
            raise UserError(f"{file}: made of {own}, which is not there")
        if all(sha256(path) != checksum for path in rows):
            raise UserError(
                f"{file}: {rows[0]} has changed since it was made; make it again by its command"
            )
