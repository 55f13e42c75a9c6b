"""What a picture or a table was made of, kept in the file itself: name and SHA-256 of each file of
rows. So it can be told whether they have changed since, without what else it took to make it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

from .errors import UserError
from .files import sha256

# The same in every format, so that all are read alike.
_MARK = re.compile(rb"made of ((?:[^\s;<>]+ [0-9a-f]{64};)+)")


def made_of(rows: Iterable[Path]) -> str:
    """The mark of what is made of these files: ``made of NAME SHA256;...``."""
    return "made of " + "".join(f"{_quoted(path)} {sha256(path)};" for path in sorted(rows))


def _quoted(path: Path) -> str:
    return quote(os.fsencode(path.name))


def has_mark(file: Path) -> bool:
    """Whether ``file`` says what it was made of; False where there is none."""
    return file.is_file() and _MARK.search(file.read_bytes()) is not None


def check_mark(file: Path) -> None:
    """Raises UserError unless the rows beside ``file``, or in the folder of its name, are those it
    was made of. What else was read (references), and what is written there, are not looked at.
    """
    if not file.is_file():
        raise UserError(f"{file}: no such file")
    found = _MARK.search(file.read_bytes())
    if not found:
        raise UserError(
            f"{file}: does not say of which rows it was made, as what diet-mt lengths, "
            "figures, bench curves and bench memory draw does"
        )
    for entry in found[1].decode().split(";")[:-1]:
        name, checksum = entry.split()
        own = os.fsdecode(unquote_to_bytes(name))
        places = [file.parent / own, file.with_suffix("") / own]
        rows = [path for path in places if path.is_file()]
        if not rows:
            raise UserError(f"{file}: made of {own}, which is not beside it")
        if all(sha256(path) != checksum for path in rows):
            raise UserError(
                f"{file}: {rows[0]} has changed since it was made; make it again by its command"
            )
