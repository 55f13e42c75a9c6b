"""What a picture or a table was made of, kept in the file itself: name and SHA-256 of each file of
rows. So it can be told whether they have changed since, without what else it took to make it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from .errors import UserError
from .files import sha256

# The same in every format, so that all are read alike.
_MARK = re.compile(rb"made of ((?:[^\s;<>]+ [0-9a-f]{64};)+)")


def made_of(rows: Iterable[Path]) -> str:
    """The mark of what is made of these files: ``made of NAME SHA256;...``."""
    return "made of " + "".join(f"{quote(path.name)} {sha256(path)};" for path in sorted(rows))


def has_mark(file: Path) -> bool:
    """Whether ``file`` says what it was made of; False where there is none."""
    return file.is_file() and _MARK.search(file.read_bytes()) is not None


def check_mark(file: Path) -> None:
    """Raises UserError unless the rows beside ``file`` are those that it was made of."""
    if not file.is_file():
        raise UserError(f"{file}: no such file")
    found = _MARK.search(file.read_bytes())
    if not found:
        raise UserError(f"{file}: does not say of which rows it was made, as those of diet-mt do")
    of = dict(entry.split() for entry in found[1].decode().split(";") if entry)
    rows = {quote(path.name): path for path in file.parent.glob("*.jsonl")}
    rows |= {quote(path.name): path for path in file.with_suffix("").glob("*.jsonl")}
    for name, checksum in of.items():
        if name not in rows:
            raise UserError(f"{file}: made of {name}, which is not beside it")
        if sha256(rows[name]) != checksum:
            raise UserError(
                f"{file}: {rows[name]} has changed since it was made; make it again by its command"
            )
