"""Reading and writing parallel text without letting anything slip.

A line is what ``\\n`` ends, and nothing else: characters such as U+0085 or U+2028, which
``str.splitlines`` takes for line ends, stay inside their sentence, so two files that are aligned by
``\\n`` stay aligned. What cannot be trusted is refused with the file and the line.

A prepared corpus is a folder holding ``train``, ``valid`` and ``test``, each with one file for each
language: ``train.en``, ``train.de`` and so on.

Command: ``python -m diet_mt.data.corpus DIR SRC TGT`` checks such a folder and prints its counts.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import IO

from ..errors import UserError

SPLITS = ("train", "valid", "test")

_BYTE_ORDER_MARK = "\ufeff"


def read_lines(path: Path) -> Iterator[str]:
    """Yields the sentences of a file, without their line ends.

    Raises:
        UserError: the file is missing, is not UTF-8, starts with a byte order mark, has Windows
            line ends, or has a line with nothing to read in it.
    """
    with _opened(path) as file:
        for number, raw in enumerate(file, start=1):  # binary files split on \n alone
            where = f"{path}, line {number}"
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                raise UserError(
                    f"{where}: not valid UTF-8 (byte 0x{raw[error.start]:02x} at column "
                    f"{error.start + 1}); convert the file to UTF-8"
                ) from None
            if number == 1 and line.startswith(_BYTE_ORDER_MARK):
                raise UserError(f"{where}: starts with a byte order mark; save it without one")
            line = line.removesuffix("\n")
            if line.endswith("\r"):
                raise UserError(f"{where}: Windows line end (CR LF); convert to plain LF")
            if not line.strip():
                raise UserError(f"{where}: empty; remove this line from both sides")
            yield line


def _opened(path: Path) -> IO[bytes]:
    try:
        return open(path, "rb")
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None


def read_parallel(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Yields (source sentence, target sentence); both files are read strictly.

    Raises:
        UserError: as ``read_lines``; also when one file has more lines than the other, or none.
    """
    pairs = 0
    for src, tgt in zip_longest(read_lines(source), read_lines(target)):
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
def writing(path: Path) -> Iterator[IO[str]]:
    """Opens ``path`` for text that appears under its name only when all of it is written."""
    part = path.with_name(path.name + ".part")
    with open(part, "w", encoding="utf-8", newline="\n") as file:
        yield file
    os.replace(part, path)


def write_lines(path: Path, lines: Iterable[str]) -> int:
    """Writes each line and ``\\n``; returns how many."""
    count = 0
    with writing(path) as file:
        for line in lines:
            file.write(line + "\n")
            count += 1
    return count


def check(folder: Path, source_lang: str, target_lang: str) -> dict[str, int]:
    """Reads all of a prepared corpus strictly; returns the number of pairs of each split."""
    return {
        split: sum(
            1
            for _ in read_parallel(
                folder / f"{split}.{source_lang}", folder / f"{split}.{target_lang}"
            )
        )
        for split in SPLITS
    }


def run(main: Callable[[], None]) -> int:
    """Runs a command's body; a ``UserError`` becomes one line on stderr and exit status 2."""
    try:
        main()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
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
