"""Manifests: which files a recipe takes in, and how each is known to be the right one.

One file per line, ``name<TAB>bytes<TAB>sha256[<TAB>URL]``; a line with ``#`` first is a comment.
With a URL, the file is an archive that stays packed. Without, size and checksum are those of its
*text*, unpacked: how a copy was compressed does not matter. Bytes may be ``-`` where they are not
known, and ``md5:...`` stands where a publisher gives nothing better.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import UserError

_LENGTHS = {"sha256": 64, "md5": 32}  # of a checksum in hexadecimal


@dataclass(frozen=True)
class Item:
    """One file, and what its bytes must be."""

    name: str
    size: int | None  # bytes; None: not known
    checksum: str  # hexadecimal
    url: str = ""  # of an archive
    method: str = "sha256"

    def differs(self, size: int, digest: str) -> str:
        """What is wrong with a file of this size and checksum; empty if it is the right one."""
        if digest == self.checksum and self.size in (None, size):
            return ""
        expected = "" if self.size is None else f"{self.size} with "
        return f"{size} bytes with {self._called} {digest}, expected {expected}{self.checksum}"

    @property
    def _called(self) -> str:
        return {"sha256": "SHA-256", "md5": "MD5"}[self.method]


def read_manifest(path: Path) -> dict[str, Item]:
    """The files that a manifest lists, by name.

    Raises:
        UserError: it cannot be read, or a line has not the fields.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    items = {}
    for number, line in enumerate(lines, start=1):
        if line and not line.startswith("#"):
            item = _parse(line)
            if item is None:
                raise UserError(
                    f"{path}, line {number}: expected name, bytes and sha256, separated by tabs"
                )
            items[item.name] = item
    return items


def _parse(line: str) -> Item | None:
    fields = line.split("\t")
    if len(fields) not in (3, 4):
        return None
    name, size, checksum = fields[:3]
    method, _, digits = checksum.rpartition(":")
    method = method or "sha256"
    if not re.fullmatch(r"\d+|-", size) or len(digits) != _LENGTHS.get(method):
        return None
    return Item(name, None if size == "-" else int(size), digits, "".join(fields[3:]), method)


class Checked:
    """Passes on blocks of bytes and keeps their size and checksum."""

    def __init__(self, method: str) -> None:
        self.size, self._digest = 0, hashlib.new(method, usedforsecurity=False)

    def over(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        for block in blocks:
            self.size += len(block)
            self._digest.update(block)
            yield block

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()
