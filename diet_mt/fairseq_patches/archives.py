"""What ``from_pretrained`` is given: a folder, a checkpoint, or an archive unpacked with care.

fairseq unpacks any file that is no folder, downloaded or not, with ``extractall``, which writes
wherever the archive says, and puts the unpacked folder in the place of the archive. Replaced:
``hub_utils.from_pretrained``, by a function that calls it, and ``file_utils.load_archive_file``.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tarfile
import tempfile
import zlib
from typing import Any, Callable, Optional

from fairseq import file_utils, hub_utils

from ..errors import UserError


def take_a_checkpoint(load: Callable[..., Any]) -> Callable[..., Any]:
    """``load(folder, checkpoint_file, ...)`` that takes the path of a checkpoint for both."""

    @functools.wraps(load)
    def wrapped(path: Any, checkpoint_file: str = "model.pt", *args: Any, **kwargs: Any) -> Any:
        path = os.fspath(path) if isinstance(path, os.PathLike) else path
        if isinstance(path, str) and os.path.isfile(path) and not tarfile.is_tarfile(path):
            path, checkpoint_file = os.path.split(os.path.abspath(path))
        return load(path, checkpoint_file, *args, **kwargs)

    return wrapped


def unpack_with_care(load: Callable[..., Optional[str]]) -> Callable[..., Optional[str]]:
    """``load(path)`` of a folder; of an archive, a folder that lives until the end of the program.
    The archive stays as it is. Raises UserError for all else: an address, or a name for one.
    """

    @functools.wraps(load)
    def wrapped(path: str, *args: Any, **kwargs: Any) -> Optional[str]:
        if os.path.isfile(path):
            return unpacked(path)
        if not os.path.isdir(path):
            raise UserError(
                f"{path}: no such folder or file; what is at an address, download it yourself, and "
                "give the file"
            )
        return load(path, *args, **kwargs)

    return wrapped


def unpacked(archive: str) -> str:
    """A folder with the files of a tar archive.

    Raises:
        UserError: it is no tar archive, or holds links, devices, or names that leave the folder.
    """
    folder = tempfile.mkdtemp(prefix="diet_mt.")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        with tarfile.open(archive) as opened:
            members = opened.getmembers()
            for member in members:
                name = os.path.normpath(member.name)
                if (
                    not (member.isfile() or member.isdir())
                    or os.path.isabs(name)
                    or name[:2] == ".."
                ):
                    raise UserError(
                        f"{archive}: refused, for {member.name!r} is no plain file inside of it; "
                        "unpack it yourself if you trust it, and give the folder"
                    )
            opened.extractall(folder, members, filter="data")
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise UserError(
            f"{archive}: neither a folder nor a tar archive that can be read ({error})"
        ) from None
    inside = os.listdir(folder)
    alone = os.path.join(folder, inside[0]) if len(inside) == 1 else folder
    return alone if os.path.isdir(alone) else folder


file_utils.load_archive_file = unpack_with_care(file_utils.load_archive_file)
hub_utils.from_pretrained = take_a_checkpoint(hub_utils.from_pretrained)
