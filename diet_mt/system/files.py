"""Atomic writing and bounded reading of files.

Only ``\\n`` ends a line: characters such as U+0085 or U+2028, at which ``str.splitlines`` splits,
stay inside their line. A file appears under its name only when all of it is written. Readers that
use :func:`opened` unpack gzip and xz.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gzip
import hashlib
import io
import lzma
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from .errors import UserError

PLUGIN = Path(__file__).resolve().parent.parent  # fairseq's --user-dir
BLOCK = 1 << 20  # bytes per read, if lines do not matter
# Characters of a word, between white space: the subwords of ten such words take a second, those of
# one a hundred times as long take minutes.
LONGEST_WORD = 10_000
LONGEST_LINE = 1 << 24  # bytes; counts of 100,000 sentences are 1.6 MB of JSON
# Ratio of sizes: text unpacks to 3 to 10 times its size, a file made to fill memory to 1,000.
MOST_UNPACKED = 50
_UNPACKED_ANYHOW = 1 << 24  # bytes, allowed at any ratio
_COMPRESSED = {b"\x1f\x8b": gzip, b"\xfd7zXZ\0": lzma}  # by first bytes
_NAMES = "surrogateescape"  # Python's handling of file names that are not UTF-8
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _Unpacked(io.RawIOBase):
    def __init__(self, path: Path, content: IO[bytes]) -> None:
        self.path, self.content = path, cast(io.BufferedIOBase, content)
        self.most = max(_UNPACKED_ANYHOW, MOST_UNPACKED * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = self.content.readinto(buffer)
        if self.content.tell() > self.most:
            hint = f"{MOST_UNPACKED} times its size; unpack it first if it is the right file"
            raise UserError(f"{self.path}: unpacks to more than {hint}")
        return size

    def close(self) -> None:
        self.content.close()
        super().close()


def opened(path: Path) -> IO[bytes]:
    """A file opened for reading, unpacked if its content is gzip or xz. Raises UserError."""
    try:
        with open(path, "rb") as file:
            start = file.read(max(map(len, _COMPRESSED)))
        for magic, module in _COMPRESSED.items():
            if start.startswith(magic):
                unpacked = _Unpacked(path, module.open(path))
                return cast(IO[bytes], io.BufferedReader(unpacked, BLOCK))
        return open(path, "rb")
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None


def plain_or_gz(folder: Path, name: str, hint: str = "put it there") -> Path:
    """The file ``name`` or ``name.gz`` in ``folder``; raises UserError if neither exists."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise UserError(f"{folder}: holds neither {name} nor {name}.gz; {hint}")


def blocks(file: IO[bytes]) -> Iterator[bytes]:
    """The content of an open file in blocks of 1 MiB."""
    while block := file.read(BLOCK):
        yield block


def need_once(paths: Sequence[Path]) -> None:
    """Raises UserError for a file that is given more than once, also by different names."""
    names: dict[Path, Path] = {}
    for path in paths:
        real = path.resolve()
        if real in names:
            other = f", as {names[real]}" if names[real] != path else ""
            raise UserError(f"{path}: given more than once{other}")
        names[real] = path


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    return checksum(path, "sha256")


def checksum(path: Path, method: str) -> str:
    """Hexadecimal digest of a file; ``method``: an algorithm of ``hashlib``."""
    digest = hashlib.new(method, usedforsecurity=False)
    with open(path, "rb") as file:
        for block in blocks(file):
            digest.update(block)
    return digest.hexdigest()


def raw_lines(path: Path) -> Iterator[bytes]:
    """Yields the lines of a file with their ``\\n``. Raises UserError for too long ones."""
    with _reading(path) as file:
        number = 0
        while line := file.readline(LONGEST_LINE + 1):  # binary files split at \n only
            number += 1
            if len(line) > LONGEST_LINE:
                raise UserError(f"{path}, line {number}: longer than {LONGEST_LINE:,} bytes")
            yield line


def raw_bytes(path: Path) -> bytes:
    """The content of a file, unpacked."""
    with _reading(path) as file:
        return b"".join(blocks(file))


@contextmanager
def _reading(path: Path) -> Iterator[IO[bytes]]:
    """A file opened by :func:`opened`; damaged content raises UserError."""
    with opened(path) as file:
        try:
            yield file
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise UserError(f"{path}: cannot be read ({error}); replace it") from None


def decoded_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yields (place, line without its ``\\n``) of a UTF-8 file; place: "PATH, line NUMBER"."""
    for number, raw in enumerate(raw_lines(path), start=1):
        where = f"{path}, line {number}"
        yield where, decoded(raw, where)


def lines_of(path: Path) -> Iterator[str]:
    """The lines of ``decoded_lines``, without their places."""
    return (line for _, line in decoded_lines(path))


def text_lines(path: Path) -> Iterator[tuple[str, str]]:
    """``decoded_lines`` of text; raises UserError for NUL and words above LONGEST_WORD."""
    for where, line in decoded_lines(path):
        if "\0" in line:
            raise UserError(f"{where}: a NUL byte; the file is not UTF-8 text")
        longest = max(map(len, line.split()), default=0) if len(line) > LONGEST_WORD else 0
        if longest > LONGEST_WORD:
            raise UserError(f"{where}: a word of {longest:,} characters, at most {LONGEST_WORD:,}")
        yield where, line


def decoded(raw: bytes, where: str) -> str:
    """A line without its ``\\n``. Raises UserError, with the place, for invalid UTF-8."""
    try:
        return raw.decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        byte = f"byte 0x{raw[error.start]:02x} at column {error.start + 1}"
        raise UserError(f"{where}: not valid UTF-8 ({byte}); convert the file to UTF-8") from None


def lines_in(path: Path) -> int:
    """Number of lines of a file, including a last one without ``\\n``."""
    lines, last = 0, b"\n"
    with _reading(path) as file:
        for block in blocks(file):  # corpora have millions of lines
            lines, last = lines + block.count(b"\n"), block[-1:]
    return lines + (last != b"\n")


@contextmanager
def writing_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Opens ``path`` for bytes that appear under its name only when all of them are written.

    Other writers of the same file wait. An error leaves no part; errors of writing are UserError.
    """
    part = path.with_name(path.name + ".part")
    try:
        with _locked(part) as file:
            try:
                yield file
                file.flush()
                os.replace(part, path)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
    except OSError as error:
        # Errors of reading within the block name another file, or, by gzip, have no number. Errors
        # of writing name no file.
        if not error.errno or error.filename not in (None, str(part)):
            raise
        hint = "; make room and run again" if error.errno in _FULL else ""
        raise UserError(f"{path}: cannot be written ({error.strerror or error}){hint}") from None


def _untruncated(path: str, flags: int) -> int:
    return os.open(path, flags & ~os.O_TRUNC, 0o666)


def _locked(part: Path) -> IO[bytes]:
    """An empty file, locked until it is closed; removes what a killed process left in it."""
    while True:
        file = open(part, "wb", opener=_untruncated)  # noqa: SIM115
        fcntl.flock(file, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            # The previous holder of the lock may have renamed or removed the file.
            if os.path.samestat(os.stat(part), os.fstat(file.fileno())):
                file.truncate(0)
                return file
        file.close()


@contextmanager
def writing(path: Path) -> Iterator[IO[str]]:
    """As :func:`writing_bytes`, for text in UTF-8."""
    with writing_bytes(path) as raw:
        file = io.TextIOWrapper(raw, encoding="utf-8", errors=_NAMES, newline="\n")
        yield file
        file.flush()


def copy(source: Path, to: Path) -> None:
    """Copies a file atomically."""
    with writing_bytes(to) as out, open(source, "rb") as file:
        shutil.copyfileobj(file, out, BLOCK)


def make_folder(path: Path) -> None:
    """Makes a folder and its parents. Raises UserError if that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path}: the folder cannot be made ({error.strerror})") from None


def write_text(path: Path, text: str) -> None:
    """Writes a file atomically, and makes its folder."""
    make_folder(path.parent)
    with writing(path) as file:
        file.write(text)


def read_text(path: Path) -> str:
    """The content of a file that ``write_text`` wrote."""
    return path.read_text(encoding="utf-8", errors=_NAMES)


def write_lines(path: Path, lines: Iterable[str]) -> int:
    """Writes lines, each followed by ``\\n``, atomically; returns their number."""
    count = 0
    with writing(path) as file:
        for line in lines:
            file.write(line + "\n")
            count += 1
    return count
