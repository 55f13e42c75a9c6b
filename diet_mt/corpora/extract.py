"""Takes single files out of a packed archive, in one pass that ends at the last of them."""

from __future__ import annotations

import gzip
import shutil
import tarfile
import zlib
from collections.abc import Iterable
from pathlib import Path

from ..errors import UserError
from ..files import BLOCK, make_folder, writing_bytes
from ..stages.progress import Progress, say


def extract(archive: Path, out: Path, members: Iterable[str]) -> None:
    """Writes ``out/<last part of the name>`` for each member of a .tgz that is not there yet.
    Raises UserError where the archive cannot be read or unpacked, or lacks a member.
    """
    wanted = {name: out / Path(name).name for name in members}
    missing = {name: path for name, path in wanted.items() if not path.exists()}
    make_folder(out)
    if not missing:
        say(f"{archive.name}: done before")
        return
    try:
        # "r|": read once, front to back, nothing kept but the member at hand.
        with gzip.open(archive, "rb") as packed, tarfile.open(fileobj=packed, mode="r|") as tar:
            _take(tar, missing, archive.name)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(
            f"{archive}: cannot be unpacked ({error}); replace it by the original"
        ) from None
    except OSError as error:
        raise UserError(f"{archive}: cannot be read ({error.strerror or error})") from None
    if missing:
        raise UserError(f"{archive}: holds no {', '.join(missing)}; replace it by the original")


def _take(tar: tarfile.TarFile, missing: dict[str, Path], archive: str) -> None:
    progress = Progress(f"{archive}, unpacked", "MB")
    for entry in tar:
        path = missing.get(entry.name.removeprefix("./"))
        content = tar.extractfile(entry) if path is not None else None
        if path is not None and content is not None:
            with writing_bytes(path) as file:
                shutil.copyfileobj(content, file, BLOCK)
            say(f"{path.name}: {entry.size:,} bytes")
            del missing[entry.name.removeprefix("./")]
        progress.add(entry.size / 1e6)
        tar.members = []  # type: ignore[attr-defined]  # or it would remember every entry
        if not missing:
            return
