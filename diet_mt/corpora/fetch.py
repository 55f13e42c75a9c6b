"""Brings the files of a public corpus into a folder, and lets nothing but those files through.

They come from a folder of the user's or from the web. A text, which the manifest lists without an
address, is unpacked: from ``NAME`` or ``NAME.gz``, or from ``URL/NAME.gz``. An archive, which has
one, stays as it is: one in the user's folder is used where it lies. A file has its name only once
it is checked; an archive is not checked again while its size and time of change stay what they
were.
"""

from __future__ import annotations

import math
import shutil
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import UserError
from ..files import blocks, make_folder, opened, writing, writing_bytes
from ..stages.lock import alone
from ..stages.progress import Progress, say
from .download import Patience, download
from .manifest import Checked, Item, read_manifest


@dataclass(frozen=True)
class Origin:
    """Where files come from."""

    manifest: Path
    folder: Path | None = None  # of the user's; None: the web
    url: str = ""  # below which texts are
    patience: Patience = field(default_factory=Patience)

    def items(self, names: Sequence[str]) -> list[Item]:
        """The files of these names.

        Raises:
            UserError: the manifest does not list one; the folder is not there, or lacks one.
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
    """Where each file is, once it is there and checked; texts and downloads are in ``out``.

    Raises:
        UserError: as ``Origin.items``, ``text_from_web`` and ``archive_from_web``.
    """
    items = origin.items(names)
    make_folder(out)
    found = {}
    for item in items:
        found[item.name] = _bring(origin, item, out)
        say(f"{item.name}: {found[item.name].stat().st_size:,} bytes, checked")
    return found


def _bring(origin: Origin, item: Item, out: Path) -> Path:
    if item.url:
        if origin.folder is not None:
            return archive_in_folder(origin.folder, item, out)
        return archive_from_web(item, out, origin.patience)
    path = out / item.name
    if not _text_is_there(path, item):
        if origin.folder is not None:
            text_from_folder(origin.folder, item, out)
        else:
            text_from_web(origin.url, item, out, origin.patience)
    return path


def text_from_folder(folder: Path, item: Item, out: Path) -> None:
    """Copies ``folder/NAME`` or ``folder/NAME.gz``, unpacked, to ``out/NAME``.

    Raises:
        UserError: there is neither, or its text is not the one in the manifest.
    """
    for source in (folder / item.name, folder / f"{item.name}.gz"):
        if source.is_file():
            _unpack(source, item, out / item.name, hint="replace it by the original file")
            return
    raise UserError(f"{folder}: holds neither {item.name} nor {item.name}.gz")


def text_from_web(base: str, item: Item, out: Path, patience: Patience) -> None:
    """Downloads ``base/NAME.gz`` and unpacks it to ``out/NAME``.

    Raises:
        UserError: as ``download``; or the text is not the one in the manifest.
    """
    url = f"{base.rstrip('/')}/{item.name}.gz"
    part = out / f"{item.name}.gz.part"
    download(url, part, size=None, patience=patience)
    try:
        _unpack(part, item, out / item.name, hint=f"downloaded from {url}; run again to fetch anew")
    finally:
        part.unlink()  # wrong content would be wrong again: the next run starts afresh


def _unpack(source: Path, item: Item, out: Path, *, hint: str) -> None:
    checked = Checked(item.method)
    with writing_bytes(out) as file:
        try:
            with opened(source) as packed:
                for block in checked.over(blocks(packed)):
                    file.write(block)
        except (EOFError, zlib.error, OSError) as error:
            if getattr(error, "errno", None):  # from writing: it says so itself
                raise
            raise UserError(f"{source}: cannot be unpacked ({error}); {hint}") from None
        wrong = item.differs(checked.size, checked.digest)
        if wrong:
            raise UserError(f"{source}: not the expected text: {wrong}; {hint}")


def all_are_there(folder: Path, items: Sequence[Item]) -> None:
    """Raises UserError naming all files that are not in the folder of the user's."""
    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder to take the files from")
    absent = [item for item in items if item.url and not (folder / item.name).is_file()]
    if absent:
        raise UserError(
            f"{folder}: holds no {', '.join(item.name for item in absent)}; fetch from "
            + ", ".join(str(item.url) for item in absent)
        )
    for item in items:
        if not any((folder / f"{item.name}{end}").is_file() for end in ("", ".gz")):
            raise UserError(f"{folder}: holds neither {item.name} nor {item.name}.gz")


def archive_in_folder(folder: Path, item: Item, stamps: Path) -> Path:
    """The archive of the user's, once it is checked.

    Raises:
        UserError: it is not there, or not the one in the manifest.
    """
    path = folder / item.name
    all_are_there(folder, [item])
    wrong = _wrong_archive(path, item, stamps)
    if wrong:
        raise UserError(f"{path}: not the expected archive: {wrong}; fetch it from {item.url}")
    return path


def archive_from_web(item: Item, out: Path, patience: Patience) -> Path:
    """The archive in ``out``, downloaded unless it is there.

    Raises:
        UserError: as ``download``; or what came is not the archive in the manifest.
    """
    path, part = out / item.name, out / f"{item.name}.part"
    with alone(out, math.inf):
        if path.is_file():
            wrong = _wrong_archive(path, item, out)
            if not wrong:
                return path
            raise UserError(f"{path}: not the expected archive: {wrong}; remove it to fetch anew")
        _make_sure_of_room(item, part)
        download(item.url, part, size=item.size, patience=patience)
        wrong = _wrong_archive(part, item, out)
        if wrong:
            part.unlink()
            raise UserError(
                f"{item.url}: not the expected archive: {wrong}; run again to fetch anew"
            )
        part.rename(path)
    return path


def _make_sure_of_room(item: Item, part: Path) -> None:
    have = part.stat().st_size if part.exists() else 0
    rest, free = (item.size or 0) - have, shutil.disk_usage(part.parent).free
    if rest > free:
        raise UserError(
            f"{part.parent}: {item.name} needs {rest >> 20} MiB more, but only {free >> 20} are "
            "free; make room or choose another folder"
        )


def _wrong_archive(path: Path, item: Item, stamps: Path) -> str:
    """What is wrong with an archive; empty if it is right, which is then remembered."""
    stamp = stamps / f"{item.name}.verified"
    state = path.stat()
    place = path.parent.resolve() / item.name  # a download is checked under another name
    seen = f"{place}\t{state.st_size}\t{state.st_mtime_ns}\t{item.checksum}\n"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == seen:
        return ""
    if item.size not in (None, state.st_size):
        return f"{state.st_size} bytes, expected {item.size}"
    checked, progress = Checked(item.method), Progress(f"{item.name}, checking", "MB")
    with open(path, "rb") as file:
        for block in checked.over(blocks(file)):
            progress.add(len(block) / 1e6)
    wrong = item.differs(checked.size, checked.digest)
    if not wrong:
        with writing(stamp) as out:
            out.write(seen)
    return wrong


def _text_is_there(path: Path, item: Item) -> bool:
    if not path.exists():
        return False
    checked = Checked(item.method)
    with open(path, "rb") as file:
        for _ in checked.over(blocks(file)):
            pass
    return not item.differs(checked.size, checked.digest)
