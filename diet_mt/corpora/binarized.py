"""Binarized data: fairseq-preprocess as a process of its own, and the integrity of its output.

fairseq maps its files into memory and reads them when they are needed: what is cut, missing or of
another dictionary ends a training late and without a reason, or goes unnoticed. Nothing here
imports fairseq.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from ..errors import UserError
from ..stages.watch import python_module, watch
from .dictionary import AGAIN, read_dictionary

# Of an .idx file: 9 bytes of magic, 8 of version, 1 that says the type of a token, 8 of the number
# of sentences; then for each its length (4 bytes) and its place in the .bin file (8 bytes).
_MAGIC = b"MMIDIDX\x00\x00"
_HEAD = 26
_KINDS = (None, "<u1", "<i1", "<i2", "<i4", "<i8", "<f8", "<f8", "<u2", "<u4", "<u8")
_PAIR = re.compile(r"[^.]+\.(?P<source>[^.-]+)-(?P<target>[^.-]+)\.(?P<side>[^.]+)")
_BLOCK = 1 << 24  # tokens looked at together


def need_fairseq(out: Path) -> None:
    """Raises UserError where fairseq is not installed, or cannot write to the folder ``out``."""
    if find_spec("fairseq_cli") is None:
        raise UserError("fairseq is not installed; install it (requirements/fairseq.txt)")
    if "," in str(out):  # separates names, for fairseq
        raise UserError(f"{out}: fairseq-preprocess allows no comma in a path; give another --out")


def shares(workers: int) -> int:
    """fairseq-preprocess's --workers: parts of a file, each for a process of its own.

    Its first process does its own part when all others have ended, so with a part for each core
    they would all wait as long again. The result is the same for any number.
    """
    return 4 * workers


def shown(options: Sequence[object], to: Path) -> str:
    """The command that writes the folder ``to``, to be pasted."""
    return shlex.join(["fairseq-preprocess", *_words(options, to)])


def preprocess(options: Sequence[object], to: Path, log: Path, name: str = "") -> None:
    """Writes the folder ``to``, and fairseq's output to ``log``."""
    command = python_module("fairseq_cli.preprocess", *_words(options, to))
    watch(name or "fairseq-preprocess", command, log, to)


def _words(options: Sequence[object], to: Path) -> list[str]:
    return [*map(str, options), "--destdir", str(to)]


def bin_folder(data: Path) -> Path:
    """``data`` or, of a prepared corpus, its ``bin``. Raises UserError if neither is binarized."""
    # A corpus may have a dictionary outside of its bin, too.
    for folder in (data / "bin", data):
        if folder.is_dir() and any(folder.glob("dict*.txt")):
            return folder
    what = "no such folder" if not data.exists() else "holds no data made by fairseq-preprocess"
    raise UserError(f"{data}: {what}; prepare it first, see diet-mt prepare --help")


def language_pair(data: Path, subset: str = "") -> tuple[str, str]:
    """Source and target language of a part of a binarized folder, or of any."""
    part = re.escape(subset) or "[^.]+"
    pattern = re.compile(rf"{part}\.([^.-]+)-([^.-]+)\.\1\.(idx|bin)")
    names = sorted(path.name for path in data.iterdir()) if data.is_dir() else []
    for name in names:
        match = pattern.fullmatch(name)
        if match:
            return match[1], match[2]
    what = f"'{subset}' data" if subset else "sentence pairs"
    raise UserError(f"{data}: no {what} made by fairseq-preprocess in this folder")


@dataclass(frozen=True)
class Index:
    """An .idx file: the type of a token in the .bin file, and how many each sentence has."""

    kind: np.dtype[np.generic]
    lengths: np.ndarray

    @property
    def size(self) -> int:
        """Bytes of the .bin file."""
        return int(self.lengths.sum(dtype=np.int64)) * self.kind.itemsize


def read_index(path: Path) -> Index:
    """Raises UserError where the file is missing, cut, or not fairseq's."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
            count = int.from_bytes(head[18:], "little")
            code = head[17] if len(head) == _HEAD else 0
            if head[:9] != _MAGIC or not 0 < code < len(_KINDS):
                raise UserError(f"{path}: cut, or no index of fairseq-preprocess; {AGAIN}")
            size, expected = path.stat().st_size, _HEAD + 12 * count
            if size != expected:
                raise UserError(
                    f"{path}: {size:,} bytes, but its {count:,} sentences take {expected:,}; "
                    f"{AGAIN}"
                )
            lengths = np.fromfile(file, dtype="<i4", count=count)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); {AGAIN}") from None
    if count and lengths.min() < 0:
        raise UserError(f"{path}: a sentence of {lengths.min()} tokens; {AGAIN}")
    return Index(np.dtype(_KINDS[code]), lengths)


def sentences_in(path: Path) -> int:
    """The number of sentences of an .idx file."""
    return len(read_index(path).lengths)


def dictionary_size(path: Path) -> int:
    """Entries of a dictionary, with fairseq's own before them."""
    # Not the number of names: an entry that takes another's place leaves its number unused.
    return max(read_dictionary(path).values()) + 1


def indices(folder: Path) -> list[Path]:
    """All .idx files of a folder and those below it, and those that are missing to a .bin file."""
    files = {
        path.with_suffix(".idx") for end in ("idx", "bin") for path in folder.rglob(f"*.{end}")
    }
    return sorted(files)


def faults(folder: Path, *, besides: str = "", tokens: bool = False) -> Iterator[str]:
    """Faults of a binarized folder and those below it, a line each.

    Args:
        besides: Prefix of the splits to leave out.
        tokens: Also check each token against its dictionary: reads all of the data.
    """
    size = cache(dictionary_size)
    for path in indices(folder):
        if besides and path.name.startswith(besides):
            continue
        try:
            index = _whole(path)
            entries = size(_dictionary_of(path))
            largest = _largest(path, index) if tokens else 0
            if largest >= entries:
                raise UserError(
                    f"{path.with_suffix('.bin')}: has token {largest}, but "
                    f"{_dictionary_of(path)} ends at {entries - 1}; {AGAIN}"
                )
            if pair := _PAIR.fullmatch(path.stem):
                _check_other_side(path, pair, len(index.lengths))
        except UserError as error:
            yield str(error)


def need_whole(folder: Path, *, besides: str = "") -> None:
    """Raises UserError for the first of ``faults``, without the tokens."""
    for fault in faults(folder, besides=besides):
        raise UserError(fault)


def need_source(folder: Path, subset: str, lang: str) -> None:
    """The same for the sentences of a subset in one language: enough to translate them."""
    pair = language_pair(folder, subset)
    _whole(folder / f"{subset}.{'-'.join(pair)}.{lang}.idx")
    for side in pair:
        dictionary_size(folder / f"dict.{side}.txt")


def _whole(path: Path) -> Index:
    """The index, whose .bin file is as long as it says. Raises UserError."""
    index, data = read_index(path), path.with_suffix(".bin")
    if not data.is_file():
        raise UserError(f"{data}: missing; {AGAIN}")
    size = data.stat().st_size
    if size != index.size:
        raise UserError(f"{data}: {size:,} bytes, but {path.name} counts {index.size:,}; {AGAIN}")
    return index


def _dictionary_of(path: Path) -> Path:
    pair = _PAIR.fullmatch(path.stem)
    return path.with_name(f"dict.{pair['side']}.txt" if pair else "dict.txt")


def _check_other_side(path: Path, pair: re.Match[str], count: int) -> None:
    name = pair["target"] if pair["side"] == pair["source"] else pair["source"]
    other = path.with_name(f"{path.stem.removesuffix(pair['side'])}{name}.idx")
    if not other.is_file():
        raise UserError(f"{other}: missing, the other side of {path.name}; {AGAIN}")
    sentences = sentences_in(other)
    if sentences != count:
        raise UserError(f"{other}: {sentences:,} sentences, but {path.name} has {count:,}; {AGAIN}")


def _largest(path: Path, index: Index) -> int:
    """The largest token of a .bin file; -1 of an empty one."""
    largest = -1
    with open(path.with_suffix(".bin"), "rb") as file:
        while (some := np.fromfile(file, dtype=index.kind, count=_BLOCK)).size:
            largest = max(largest, int(some.max()))
    return largest
