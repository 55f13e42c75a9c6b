"""Brings the files of a public corpus into a folder, and lets nothing but those files through.

They come from a folder of the user's or from the web. A text, which the manifest lists without an
address, is unpacked: from ``NAME`` or ``NAME.gz``, or from ``URL/NAME.gz``. An archive, which has
one, stays as it is: one in the user's folder is used where it lies. A file has its name only once
it is checked.
"""

from __future__ import annotations

import math
import shutil
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import UserError
from ..files import BLOCK, make_folder, need_folder, opened, plain_or_gz, writing_bytes
from ..stages.lock import alone
from ..stages.progress import say
from .download import Patience, download
from .manifest import Item, read_manifest


@dataclass(frozen=True)
class Origin:
    """Where files come from."""

    manifest: Path
    folder: Path | None = None  # of the user's; None: the web
    url: str = ""  # below which texts are
    patience: Patience = field(default_factory=Patience)

    def items(self, names: Sequence[str]) -> list[Item]:
        """The files of these names. Raises UserError where the manifest does not list one; the
        folder is not there, or lacks one.
        """
        listed = read_manifest(self.manifest)
        for name in names:
            if name not in listed:
                raise UserError(f"{self.manifest}: does not list {name}")
        items = [listed[name] for name in names]
        if self.folder is not None:
            all_are_there(self.folder, items)
        return items


def fetch(origin: Origin, names: Sequence[str], out: Path) -> dict[str, Path]:
    """Where each file is, once it is there and checked; texts and downloads are in ``out``. Raises
    UserError as ``Origin.items``, ``text_from_web`` and ``archive_from_web``.
    """
    items = origin.items(names)
    make_folder(out)
    found = {}
    for item in items:
        path = out / item.name
        if item.url and origin.folder is not None:
            path = archive_in_folder(origin.folder, item)
        elif item.url:
            archive_from_web(item, out, origin.patience)
        elif path.exists() and not item.fault_of(path):
            pass
        elif origin.folder is not None:
            text_from_folder(origin.folder, item, out)
        else:
            text_from_web(origin.url, item, out, origin.patience)
        say(f"{item.name}: {path.stat().st_size:,} bytes, checked")
        found[item.name] = path
    return found


def text_from_folder(folder: Path, item: Item, out: Path) -> None:
    """Copies ``folder/NAME`` or ``folder/NAME.gz``, unpacked, to ``out/NAME``. Raises UserError
    where its text is not the one in the manifest.
    """
    source = plain_or_gz(folder, item.name)
    _unpack(source, item, out / item.name, hint="replace it by the original file")


def text_from_web(base: str, item: Item, out: Path, patience: Patience) -> None:
    """Downloads ``base/NAME.gz`` and unpacks it to ``out/NAME``. Raises UserError as ``download``;
    or where the text is not the one in the manifest.
    """
    url = f"{base.rstrip('/')}/{item.name}.gz"
    part = out / f"{item.name}.gz.part"
    download(url, part, size=None, patience=patience)
    try:
        _unpack(part, item, out / item.name, hint=f"downloaded from {url}; run again to fetch anew")
    finally:
        part.unlink()  # wrong content would be wrong again: the next run starts afresh


def _unpack(source: Path, item: Item, out: Path, *, hint: str) -> None:
    with writing_bytes(out) as file:
        try:
            with opened(source) as packed:
                shutil.copyfileobj(packed, file, BLOCK)
        except (EOFError, zlib.error, OSError) as error:
            if getattr(error, "errno", None):  # from writing: it says so itself
                raise
            raise UserError(f"{source}: cannot be unpacked ({error}); {hint}") from None
        file.flush()
        if fault := item.fault_of(Path(file.name)):
            raise UserError(f"{source}: not the expected text: {fault}; {hint}")


def all_are_there(folder: Path, items: Sequence[Item]) -> None:
    """Raises UserError naming all files that are not in the folder of the user's."""
    need_folder(folder)
    absent = [item for item in items if item.url and not (folder / item.name).is_file()]
    if absent:
        raise UserError(
            f"{folder}: holds no {', '.join(item.name for item in absent)}; fetch from "
            + ", ".join(item.url for item in absent)
        )
    for item in items:
        plain_or_gz(folder, item.name)


def archive_in_folder(folder: Path, item: Item) -> Path:
    """The archive of the user's, once it is checked. Raises UserError where it is not the one in
    the manifest.
    """
    path = folder / item.name
    if fault := item.fault_of(path):
        raise UserError(f"{path}: not the expected archive: {fault}; fetch it from {item.url}")
    return path


def archive_from_web(item: Item, out: Path, patience: Patience) -> None:
    """Downloads the archive to ``out``, unless it is there. Raises UserError as ``download``; or
    where what came is not the archive in the manifest.
    """
    path, part = out / item.name, out / f"{item.name}.part"
    with alone(out, math.inf):
        if path.is_file():
            if fault := item.fault_of(path):
                what = f"not the expected archive: {fault}; remove it to fetch anew"
                raise UserError(f"{path}: {what}")
            return
        have = part.stat().st_size if part.exists() else 0
        rest, free = (item.size or 0) - have, shutil.disk_usage(out).free
        if rest > free:
            raise UserError(
                f"{out}: {item.name} needs {rest >> 20} MiB more, but only {free >> 20} are "
                "free; make room or choose another folder"
            )
        download(item.url, part, size=item.size, patience=patience)
        if fault := item.fault_of(part):
            part.unlink()
            what = f"not the expected archive: {fault}; run again to fetch anew"
            raise UserError(f"{item.url}: {what}")
        part.rename(path)
