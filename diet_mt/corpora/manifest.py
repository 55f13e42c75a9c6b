"""Manifests: which files a recipe takes in, and how each is known to be the right one.

One file per line, ``name<TAB>bytes<TAB>sha256[<TAB>URL]``; a line with ``#`` first is a comment.
With a URL, the file is an archive that stays packed. Without, size and checksum are those of its
*text*, unpacked: how a copy was compressed does not matter. Bytes may be ``-`` where they are not
known, and ``md5:...`` stands where a publisher gives nothing better.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ..errors import UserError
from ..files import checksum, decoded_lines

_LINE = re.compile(r"([^\t]+)\t(\d+|-)\t(?:([0-9a-f]{64})|md5:([0-9a-f]{32}))(?:\t([^\t]*))?")


@dataclass(frozen=True)
class Item:
    """One file, and what its bytes must be."""

    name: str
    size: int | None  # bytes; None: not known
    checksum: str  # hexadecimal
    url: str = ""  # of an archive
    method: str = "sha256"

    def fault_of(self, path: Path) -> str:
        """What is wrong with a file; empty if it is the right one."""
        size, digest = path.stat().st_size, checksum(path, self.method)
        if digest == self.checksum and self.size in (None, size):
            return ""
        called = {"sha256": "SHA-256", "md5": "MD5"}[self.method]
        expected = "" if self.size is None else f"{self.size} with "
        return f"{size} bytes with {called} {digest}, expected {expected}{self.checksum}"


def read_manifest(path: Path) -> dict[str, Item]:
    """The files that a manifest lists, by name. Raises UserError as ``decoded_lines``, and where a
    line has not the fields.
    """
    items = {}
    for where, line in decoded_lines(path):
        if line and not line.startswith("#"):
            found = _LINE.fullmatch(line)
            if not found:
                raise UserError(f"{where}: expected name, bytes and sha256, separated by tabs")
            name, size, sha256, md5, url = found.groups(default="")
            known, method = None if size == "-" else int(size), "md5" if md5 else "sha256"
            items[name] = Item(name, known, sha256 or md5, url, method)
    return items
