"""Reading and writing parallel text without letting anything slip.

A line is what ``\\n`` ends, and nothing else: characters such as U+0085 or U+2028, which
``str.splitlines`` takes for line ends, stay inside their sentence, so two files that are aligned by
``\\n`` stay aligned. What cannot be trusted is refused with the file and the line.

A prepared corpus is a folder holding ``train``, ``valid`` and ``test``, each with one file for each
language: ``train.en``, ``train.de`` and so on. It may hold a second test set, ``test1``.

Command: ``python -m diet_mt.data.corpus DIR SRC TGT`` checks such a folder and prints its counts.
"""

from __future__ import annotations

import argparse
import errno
import gzip
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import IO, TypeVar, cast

from ..errors import UserError

SPLITS = ("train", "valid", "test")
SECOND_TEST = "test1"  # where the two directions of a pair have test sets of their own

_BYTE_ORDER_MARK = "\ufeff"
BLOCK = 1 << 20  # bytes read at a time, where lines do not matter
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def splits_in(folder: Path, lang: str) -> tuple[str, ...]:
    """The splits of a prepared corpus: SPLITS, and SECOND_TEST where it is there."""
    second = (folder / f"{SECOND_TEST}.{lang}").exists()
    return (*SPLITS, SECOND_TEST) if second else SPLITS


def opened(path: Path) -> IO[bytes]:
    """Opens a file for reading, unpacked if it is gzipped, whatever its name ends in.

    Raises:
        UserError: it cannot be opened.
    """
    try:
        with open(path, "rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        return cast(IO[bytes], gzip.open(path, "rb")) if packed else open(path, "rb")
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None


def blocks(file: IO[bytes]) -> Iterator[bytes]:
    """All that is in an open file, a megabyte at a time."""
    while block := file.read(BLOCK):
        yield block


def raw_lines(path: Path) -> Iterator[bytes]:
    """Yields the lines of a file, plain or gzipped, as they are, with their ``\\n``.

    Raises:
        UserError: the file cannot be read or unpacked.
    """
    with opened(path) as file:
        try:
            yield from file  # binary files split on \n alone
        except (OSError, EOFError, zlib.error) as error:
            raise UserError(f"{path}: cannot be read ({error}); replace it") from None


def text_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yields (place, line without its ``\\n``) of a file, plain or gzipped.

    Raises:
        UserError: as ``raw_lines``; also where the file is not UTF-8.
    """
    for number, raw in enumerate(raw_lines(path), start=1):
        where = f"{path}, line {number}"
        try:
            yield where, raw.decode("utf-8").removesuffix("\n")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{where}: not valid UTF-8 (byte 0x{raw[error.start]:02x} at column "
                f"{error.start + 1}); convert the file to UTF-8"
            ) from None


def read_lines(path: Path) -> Iterator[str]:
    """Yields the sentences of a file, plain or gzipped, without their line ends.

    Raises:
        UserError: the file is missing, is not UTF-8, starts with a byte order mark, has Windows
            line ends, or has a line with nothing to read in it.
    """
    for number, (where, line) in enumerate(text_lines(path), start=1):
        if number == 1 and line.startswith(_BYTE_ORDER_MARK):
            raise UserError(f"{where}: starts with a byte order mark; save it without one")
        if line.endswith("\r"):
            raise UserError(f"{where}: Windows line end (CR LF); convert to plain LF")
        if not line.strip():
            raise UserError(f"{where}: empty; remove this line from both sides")
        yield line


Line = TypeVar("Line", str, bytes)


def read_parallel(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Yields (source sentence, target sentence); both files are read strictly.

    Raises:
        UserError: as ``read_lines`` and ``paired``.
    """
    return paired(source, target, read_lines)


def paired(
    source: Path, target: Path, read: Callable[[Path], Iterator[Line]]
) -> Iterator[tuple[Line, Line]]:
    """Yields the lines of two files side by side, as ``read`` gives them.

    Raises:
        UserError: as ``read``; also when one file has more lines than the other, or none.
    """
    pairs = 0
    for src, tgt in zip_longest(read(source), read(target)):
        if src is None or tgt is None:
            longer, shorter = (target, source) if src is None else (source, target)
            raise UserError(
                f"{longer}: more lines than {shorter}, which ends after line {pairs}; "
                "line n of one must translate line n of the other"
            )
        pairs += 1
        yield src, tgt
    if pairs == 0:
        raise UserError(f"{source}: no lines")


@contextmanager
def _part_of(path: Path) -> Iterator[Path]:
    """Yields the path to write; what is there in the end takes the name ``path``.

    Raises:
        UserError: it cannot be written: no space left, no permission. Nothing stays.
    """
    part = path.with_name(path.name + ".part")
    try:
        yield part
        os.replace(part, path)
    except BaseException as error:
        part.unlink(missing_ok=True)
        # Reading errors that pass through here name another file; those of writing name none.
        # Those of gzip have no number.
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(part)):
            hint = "; make room and run again" if error.errno in _FULL else ""
            what = f"cannot be written ({error.strerror or error}){hint}"
            raise UserError(f"{path}: {what}") from None
        raise


@contextmanager
def writing(path: Path) -> Iterator[IO[str]]:
    """Opens ``path`` for text that appears under its name only when all of it is written."""
    with _part_of(path) as part, open(part, "w", encoding="utf-8", newline="\n") as file:
        yield file


@contextmanager
def writing_bytes(path: Path) -> Iterator[IO[bytes]]:
    """As ``writing``, for bytes."""
    with _part_of(path) as part, open(part, "wb") as file:
        yield file


def make_folder(path: Path) -> None:
    """Makes a folder and those above it. Raises UserError where that cannot be done."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path}: the folder cannot be made ({error.strerror})") from None


def write_lines(path: Path, lines: Iterable[str]) -> int:
    """Writes each line and ``\\n``; returns how many."""
    count = 0
    with writing(path) as file:
        for line in lines:
            file.write(line + "\n")
            count += 1
    return count


def convert(
    source: Path, out: Path, langs: Iterable[str], one: Callable[[Path, Path, str], object]
) -> None:
    """Calls ``one(file, new file, language)`` for each file of a corpus that ``out`` lacks.

    A file that is there is whole, so an interrupted conversion continues with the next one.
    """
    make_folder(out)
    for lang in langs:
        for split in splits_in(source, lang):
            name = f"{split}.{lang}"
            if (out / name).exists():
                print(f"   {name}: done before", file=sys.stderr, flush=True)
            else:
                one(source / name, out / name, lang)


def check(folder: Path, source_lang: str, target_lang: str) -> dict[str, int]:
    """Reads all of a prepared corpus strictly; returns the number of pairs of each split."""
    return {
        split: sum(
            1
            for _ in read_parallel(
                folder / f"{split}.{source_lang}", folder / f"{split}.{target_lang}"
            )
        )
        for split in splits_in(folder, source_lang)
    }


def run(main: Callable[[], None]) -> int:
    """Runs a command's body; what the user can mend becomes one line on stderr and status 2."""
    try:
        main()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("error: interrupted; run again to continue", file=sys.stderr)
        return 130
    return 0


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="diet_mt.data.corpus", description="check a corpus")
    parser.add_argument("folder", type=Path, help="holds {train,valid,test}.{SRC,TGT}")
    parser.add_argument("langs", nargs=2, metavar="LANG", help="source and target language")
    args = parser.parse_args(argv)

    def body() -> None:
        for split, pairs in check(args.folder, *args.langs).items():
            print(f"{split}\t{pairs}")

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
