"""``from_pretrained`` of a folder, a checkpoint, or an archive."""

from __future__ import annotations

import atexit
import os
import shutil
import tarfile
import tempfile
import zlib
from typing import Any, Callable

from ..system.errors import UserError


def from_pretrained(
    original: Callable[..., Any],
    path: Any,
    checkpoint_file: str = "model.pt",
    *args: Any,
    **kwargs: Any,
) -> Any:
    """fairseq's, where the path of a checkpoint may be given for folder and file."""
    path = os.fspath(path) if isinstance(path, os.PathLike) else path
    if isinstance(path, str) and os.path.isfile(path) and not tarfile.is_tarfile(path):
        path, checkpoint_file = os.path.split(os.path.abspath(path))
    return original(path, checkpoint_file, *args, **kwargs)


def load_archive_file(original: Callable[..., Any], path: str, *args: Any, **kwargs: Any) -> Any:
    """A folder as it is; a folder with the files of an archive, which lives until the program ends.
    Nothing is downloaded.
    """
    if os.path.isfile(path):
        return _unpacked(path)
    if not os.path.isdir(path):
        raise UserError(f"{path}: no such folder or file; download it yourself and give the file")
    return original(path, *args, **kwargs)


def _unpacked(archive: str) -> str:
    folder = tempfile.mkdtemp(prefix="diet_mt.")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        with tarfile.open(archive) as opened:
            members = opened.getmembers()
            for member in members:
                name = os.path.normpath(member.name)
                plain = member.isfile() or member.isdir()
                if not plain or os.path.isabs(name) or name[:2] == "..":
                    raise UserError(
                        f"{archive}: refused, for {member.name!r} is no plain file inside of it; "
                        "unpack it yourself if you trust it, and give the folder"
                    )
            opened.extractall(folder, members, filter="data")
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise UserError(f"{archive}: no tar archive that can be read ({error})") from None
    inside = os.listdir(folder)
    alone = os.path.join(folder, inside[0]) if len(inside) == 1 else folder
    return alone if os.path.isdir(alone) else folder
