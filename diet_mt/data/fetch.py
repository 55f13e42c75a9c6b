"""Brings the files of a public corpus into a folder, and lets nothing but those files through.

A manifest names each file with the size and SHA-256 of its *text*, unpacked: how a copy was
compressed does not matter. The files come from a folder of the user's (``NAME`` or ``NAME.gz``) or
from a web address (``BASE/NAME.gz``). An interrupted download continues where it stopped. A file
has its name only once its text is checked.

Manifest: one file per line, ``name<TAB>bytes<TAB>sha256``; a line with ``#`` first is a comment.
Command: ``python -m diet_mt.data.fetch --manifest M (--folder DIR | --url BASE) --out OUT NAME...``
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import shutil
import sys
import urllib.error
import urllib.request
import zlib
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import BinaryIO

from ..errors import UserError
from .corpus import run

_BLOCK = 1 << 20  # bytes
_TIMEOUT = 60  # seconds without any byte


@dataclass(frozen=True)
class Text:
    """What a file must unpack to."""

    name: str
    size: int  # bytes
    sha256: str


def read_manifest(path: Path) -> dict[str, Text]:
    """The files that a manifest lists, by name.

    Raises:
        UserError: a line has not the three fields.
    """
    texts = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if not line or line.startswith("#"):
            continue
        try:
            name, size, sha256 = line.split("\t")
            texts[name] = Text(name, int(size), sha256)
        except ValueError:
            raise UserError(
                f"{path}, line {number}: expected name, bytes and sha256, separated by tabs"
            ) from None
    return texts


def from_folder(folder: Path, text: Text, out: Path) -> None:
    """Copies ``folder/NAME`` or ``folder/NAME.gz``, unpacked, to ``out/NAME``.

    Raises:
        UserError: there is neither, or its text is not the one in the manifest.
    """
    for source in (folder / text.name, folder / f"{text.name}.gz"):
        if source.is_file():
            _unpack(source, text, out / text.name, hint="replace it by the original file")
            return
    raise UserError(f"{folder}: holds neither {text.name} nor {text.name}.gz")


def from_web(base: str, text: Text, out: Path) -> None:
    """Downloads ``base/NAME.gz`` and unpacks it to ``out/NAME``.

    Raises:
        UserError: the server cannot be reached or refuses, the transfer breaks off (what came is
            kept and continued next time), or the text is not the one in the manifest.
    """
    url = f"{base.rstrip('/')}/{text.name}.gz"
    part = out / f"{text.name}.gz.part"
    try:
        _transfer(url, part)
    except urllib.error.HTTPError as error:
        raise UserError(f"{url}: the server answered {error.code} {error.reason}") from None
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise UserError(f"{url}: download failed ({reason}); run again to continue") from None
    try:
        _unpack(part, text, out / text.name, hint=f"downloaded from {url}; run again to fetch anew")
    finally:
        part.unlink()  # wrong content would be wrong again: the next run starts afresh


def _transfer(url: str, part: Path) -> None:
    """Appends to ``part`` what it still lacks of ``url``; ends without error only when whole."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # nothing lies beyond what we have: it was complete
            return
        raise
    with response:
        if response.status != 206:  # the server sends everything, asked or not
            have = 0
        expected = response.headers.get("Content-Length")
        with open(part, "ab" if have else "wb") as file:
            shutil.copyfileobj(response, file, _BLOCK)
            got = file.tell() - have
    if expected is not None and got != int(expected):
        raise OSError(f"{got} of {expected} bytes arrived")


def _unpack(source: Path, text: Text, out: Path, *, hint: str) -> None:
    part = out.with_name(out.name + ".part")
    digest, size = hashlib.sha256(), 0
    try:
        with _open(source) as packed, open(part, "wb") as file:
            while block := packed.read(_BLOCK):
                digest.update(block)
                size += len(block)
                file.write(block)
        if (size, digest.hexdigest()) != (text.size, text.sha256):
            raise UserError(
                f"{source}: not the expected text: {size} bytes with SHA-256 "
                f"{digest.hexdigest()}, expected {text.size} with {text.sha256}; {hint}"
            )
        os.replace(part, out)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{source}: cannot be unpacked ({error}); {hint}") from None
    finally:
        part.unlink(missing_ok=True)


def _is_there(path: Path, text: Text) -> bool:
    if not path.exists():
        return False
    with open(path, "rb") as file:
        digest = hashlib.sha256()
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest() == text.sha256


def _open(source: Path) -> BinaryIO:
    # A partial download is compressed too, whatever its name ends in: look at the first bytes.
    with open(source, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(source, "rb") if packed else open(source, "rb")  # type: ignore[return-value]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="diet_mt.data.fetch", description="fetch and check files")
    parser.add_argument("--manifest", type=Path, required=True)
    origin = parser.add_mutually_exclusive_group(required=True)
    origin.add_argument("--folder", type=Path, help="take the files from here")
    origin.add_argument("--url", help="download them from below this address")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("names", nargs="+", metavar="NAME")
    args = parser.parse_args(argv)

    def body() -> None:
        texts = read_manifest(args.manifest)
        args.out.mkdir(parents=True, exist_ok=True)
        for name in args.names:
            if name not in texts:
                raise UserError(f"{args.manifest}: does not list {name}")
            if _is_there(args.out / name, texts[name]):
                continue
            if args.folder is not None:
                from_folder(args.folder, texts[name], args.out)
            else:
                from_web(args.url, texts[name], args.out)
            print(f"  {name}: {texts[name].size} bytes, checked", file=sys.stderr, flush=True)

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
