"""Dictionaries and binarized data of fairseq-preprocess, read without fairseq.

fairseq maps its files into memory and reads them on demand: a truncated or missing file, or one of
another dictionary, makes a training fail late without a clear error, or goes unnoticed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from ..system.engine import RAW, SETTINGS, SUMS, missing_stages, with_checksums
from ..system.errors import UserError
from ..system.files import decoded, lines_in, raw_lines, sha256, write_lines
from ..system.process import python_module, watch

UNKNOWN = "<unk>"
# fairseq's special symbols: before the entries of a dictionary, and for masked words after them.
FIRST = ("<s>", "<pad>", "</s>", UNKNOWN)
MASK = "<mask>"
MULTIPLE = 8  # sizes of dictionaries are multiples of it, for tensor cores
AGAIN = "remove its folder and prepare the data again"  # hint for a damaged file
_OVERWRITES = " #fairseq:overwrite"  # ends the line of a word that replaces an earlier one

# An .idx file: magic (9 bytes), version (8), type of a token (1) and number of sentences (8); then
# the length of each sentence (4 bytes) and its offset in the .bin file (8 bytes).
_MAGIC = b"MMIDIDX\x00\x00"
_HEAD = 26
_KINDS = (None, "<u1", "<i1", "<i2", "<i4", "<i8", "<f8", "<f8", "<u2", "<u4", "<u8")
_PAIR = re.compile(r"[^.]+\.(?P<source>[^.-]+)-(?P<target>[^.-]+)\.(?P<side>[^.]+)")
_BLOCK = 1 << 24  # tokens read at a time
# Candidates for the text of an .idx file; the first existing one counts.
_TEXT = ("clean/{split}.{part}", f"{RAW}/{{split}}.{{part}}", "pieces/{split}")

_SUM = re.compile(r"([0-9a-f]{64})  (\S.*)")


def need_fairseq(out: Path) -> None:
    """Raises :class:`UserError` if fairseq is missing or ``out`` has a comma in its path."""
    if find_spec("fairseq_cli") is None:
        raise UserError("fairseq is not installed; install it (requirements/fairseq.txt)")
    if "," in str(out):  # separates names, for fairseq
        raise UserError(f"{out}: fairseq-preprocess allows no comma in a path; give another --out")


def parts(workers: int) -> int:
    """``--workers`` of fairseq-preprocess: parts of a file, each with its own process.

    The first part starts after all others have ended, so one part per core would take twice the
    time. The result does not depend on the number.
    """
    return 4 * workers


def shown(options: Sequence[object], to: Path) -> str:
    """The shell command that writes the folder ``to``."""
    return shlex.join(["fairseq-preprocess", *_words(options, to)])


def preprocess(options: Sequence[object], to: Path, log: Path, name: str = "") -> None:
    """Runs fairseq-preprocess, which writes the folder ``to``; its output goes to ``log``."""
    command = python_module("fairseq_cli.preprocess", *_words(options, to))
    watch(name or "fairseq-preprocess", command, log, to)


def _words(options: Sequence[object], to: Path) -> list[str]:
    return [*map(str, options), "--destdir", str(to)]


def read_dictionary(path: Path) -> dict[str, int]:
    """Entry -> number in a ``dict.txt``, including fairseq's special symbols. Raises
    :class:`UserError` for lines other than a word and its count, and for repeated words.
    """
    numbers = {symbol: number for number, symbol in enumerate(FIRST)}
    for row, raw in enumerate(raw_lines(path), start=1):
        where = f"{path}, line {row}"
        line = decoded(raw, where).rstrip()
        entry, _, count = line.removesuffix(_OVERWRITES).rpartition(" ")
        if not (entry and count.isdecimal() and raw.endswith(b"\n")):
            raise UserError(f"{where}: not a word with its count; {AGAIN}")
        if entry in numbers and not line.endswith(_OVERWRITES):
            raise UserError(f"{where}: duplicate word '{entry}'; {AGAIN}")
        numbers[entry] = len(FIRST) + row - 1
    return numbers


def dictionary_size(path: Path) -> int:
    """Number of entries of a dictionary, including fairseq's special symbols."""
    # Not the number of words: an entry that overwrites another leaves a number unused.
    return max(read_dictionary(path).values()) + 1


def write_dictionary(symbols: Iterable[str], out: Path, later: int = 0) -> None:
    """Writes a ``--srcdict`` of the pieces of a subword model, padded to a multiple of 8.

    A dictionary made by fairseq would contain characters that the model does not know. Counts are
    not used after preprocessing; here they are 1. ``later``: entries that fairseq will append.
    """
    entries = list(symbols)
    missing = -(len(FIRST) + len(entries) + later) % MULTIPLE
    lines = [f"{symbol} 1" for symbol in entries]
    write_lines(out, lines + [f"madeupword{number:04d} 0" for number in range(missing)])


def bin_folder(data: Path) -> Path:
    """Folder of binarized data: ``data/bin`` or ``data``. Raises UserError if there is none."""
    # "bin" first: a corpus may also have a dictionary outside of it.
    for folder in (data / "bin", data):
        if folder.is_dir() and any(folder.glob("dict*.txt")):
            return folder
    what = "no such folder" if not data.exists() else "holds no data made by fairseq-preprocess"
    raise UserError(f"{data}: {what}; prepare it first, see diet-mt prepare --help")


def language_pair(data: Path, subset: str = "") -> tuple[str, str]:
    """Source and target language of ``subset``, default any. Raises UserError without pairs."""
    part = re.escape(subset) or "[^.]+"
    pattern = re.compile(rf"{part}\.([^.-]+)-([^.-]+)\.\1\.(idx|bin)")
    names = sorted(path.name for path in data.iterdir()) if data.is_dir() else []
    for match in filter(None, map(pattern.fullmatch, names)):
        return match[1], match[2]
    what = f"'{subset}' data" if subset else "sentence pairs"
    raise UserError(f"{data}: no {what} made by fairseq-preprocess in this folder")


@dataclass(frozen=True)
class Index:
    """An .idx file: the type of tokens in the .bin file, and the length of each sentence."""

    kind: np.dtype[np.generic]
    lengths: np.ndarray

    @property
    def size(self) -> int:
        """Size of the .bin file in bytes."""
        return int(self.lengths.sum(dtype=np.int64)) * self.kind.itemsize


def read_index(path: Path) -> Index:
    """The content of an .idx file. Raises :class:`UserError` if it is damaged."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
            count = int.from_bytes(head[18:], "little")
            code = head[17] if len(head) == _HEAD else 0
            if head[:9] != _MAGIC or not 0 < code < len(_KINDS):
                raise UserError(f"{path}: truncated, or not by fairseq-preprocess; {AGAIN}")
            size, expected = path.stat().st_size, _HEAD + 12 * count
            if size != expected:
                sizes = f"{size:,} bytes, but its {count:,} sentences take {expected:,}"
                raise UserError(f"{path}: {sizes}; {AGAIN}")
            lengths = np.fromfile(file, dtype="<i4", count=count)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); {AGAIN}") from None
    if count and lengths.min() < 0:
        raise UserError(f"{path}: a sentence of {lengths.min()} tokens; {AGAIN}")
    return Index(np.dtype(_KINDS[code]), lengths)


def count_in(path: Path) -> int:
    """The number of sentences of an .idx file."""
    return len(read_index(path).lengths)


def indices(folder: Path) -> list[Path]:
    """All .idx files below a folder, including missing ones of existing .bin files."""
    files = {
        path.with_suffix(".idx") for end in ("idx", "bin") for path in folder.rglob(f"*.{end}")
    }
    return sorted(files)


def faults(folder: Path, *, except_prefix: str = "", tokens: bool = False) -> Iterator[str]:
    """Messages about faults of the binarized data below a folder.

    ``except_prefix``: of files to omit, or empty; ``tokens``: check tokens against the dictionary.
    """
    size = cache(dictionary_size)
    for path in indices(folder):
        if except_prefix and path.name.startswith(except_prefix):
            continue
        try:
            index, pair = _complete(path), _PAIR.fullmatch(path.stem)
            dictionary = path.with_name(f"dict.{pair['side']}.txt" if pair else "dict.txt")
            entries = size(dictionary)
            largest = _largest(path, index) if tokens else 0
            if largest >= entries:
                fault = f"has token {largest}, but {dictionary} ends at {entries - 1}"
                raise UserError(f"{path.with_suffix('.bin')}: {fault}; {AGAIN}")
            if pair:
                _check_other_side(path, pair, len(index.lengths))
        except UserError as error:
            yield str(error)


def need_whole(folder: Path, *, except_prefix: str = "") -> None:
    """Raises :class:`UserError` for the first fault of a folder; tokens are not checked."""
    for fault in faults(folder, except_prefix=except_prefix):
        raise UserError(fault)


def need_source(folder: Path, subset: str, lang: str) -> None:
    """Raises :class:`UserError` for a fault of the data for translating a subset from ``lang``."""
    pair = language_pair(folder, subset)
    _complete(folder / f"{subset}.{'-'.join(pair)}.{lang}.idx")
    for side in pair:
        dictionary_size(folder / f"dict.{side}.txt")


def _complete(path: Path) -> Index:
    """The index of an .idx file whose .bin file has the expected length."""
    index, data = read_index(path), path.with_suffix(".bin")
    if not data.is_file():
        raise UserError(f"{data}: missing; {AGAIN}")
    size = data.stat().st_size
    if size != index.size:
        raise UserError(f"{data}: {size:,} bytes, but {path.name} counts {index.size:,}; {AGAIN}")
    return index


def _check_other_side(path: Path, pair: re.Match[str], count: int) -> None:
    name = pair["target"] if pair["side"] == pair["source"] else pair["source"]
    other = path.with_name(f"{path.stem.removesuffix(pair['side'])}{name}.idx")
    if not other.is_file():
        raise UserError(f"{other}: missing, the other side of {path.name}; {AGAIN}")
    sentences = count_in(other)
    if sentences != count:
        raise UserError(f"{other}: {sentences:,} sentences, but {path.name} has {count:,}; {AGAIN}")


def _largest(path: Path, index: Index) -> int:
    """The largest token of a .bin file; -1 if it is empty."""
    largest = -1
    with open(path.with_suffix(".bin"), "rb") as file:
        while (some := np.fromfile(file, dtype=index.kind, count=_BLOCK)).size:
            largest = max(largest, int(some.max()))
    return largest


def is_prepared(folder: Path) -> bool:
    """Whether a folder contains a prepared corpus or binarized data."""
    names = (SETTINGS, SUMS, "dict*.txt", "bin/dict*.txt")
    return folder.is_dir() and any(any(folder.glob(name)) for name in names)


def check_prepared(folder: Path) -> tuple[list[str], str]:
    """Messages about faults of prepared data, and a summary.

    Checks the results of all stages, checksums, sentences against text, both sides of every split,
    and every token against its dictionary. Of a corpus' folder ``bin``, checks the whole corpus.
    """
    if folder.name == "bin" and (folder.absolute().parent / SETTINGS).is_file():
        folder = folder.parent
    wrong = list(faults(folder, tokens=True))
    damaged = {fault.split(": ", 1)[0].split(", line ")[0] for fault in wrong}
    counts: dict[str, int] = {}
    for index in indices(folder):
        try:
            count = count_in(index)
        except UserError:  # one of the faults
            continue
        counts[index.name.split(".")[0]] = count
        text = _text_of(folder, index)
        if text and (lines := lines_in(text)) != count:
            wrong.append(f"{index}: {count:,} sentences, but {text} has {lines:,} lines")
    missing = "missing; prepare the data again"
    wrong += [f"{folder / name}: {missing}" for name in missing_stages(folder)]
    sums = list(_sums(folder))
    for name, fault in sums:
        if fault and str(folder / name) not in damaged:
            wrong.append(f"{folder / name}: {fault}")
    words = [f"{split} {count:,}" for split, count in counts.items()]
    dictionaries = sorted(folder.rglob("dict*.txt")) if not wrong else []
    words += [f"{path.name} {dictionary_size(path):,}" for path in dictionaries]
    words.append(f"checksums of {len(sums)} files" if sums else f"no {SUMS}")
    return wrong, ", ".join(words)


def _text_of(folder: Path, index: Path) -> Path | None:
    """The text of an .idx file: of one language, one part of the examples, or the split."""
    split, _, rest = index.stem.partition(".")
    part = rest.rpartition(".")[2] or index.parent.name
    texts = (folder / name.format(split=split, part=part) for name in _TEXT)
    return next(filter(Path.is_file, texts), None)


def _sums(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and fault (or "") of each file with a checksum, and of files that lack one."""
    if not (folder / SUMS).is_file():
        return
    named = set()
    for number, line in enumerate(raw_lines(folder / SUMS), start=1):
        match = _SUM.fullmatch(line.decode("utf-8", errors="replace").removesuffix("\n"))
        if not match or ".." in Path(match[2]).parts or Path(match[2]).is_absolute():
            yield SUMS, f"line {number} is no checksum of a file in this folder"
            continue
        named.add(match[2])
        if not (folder / match[2]).is_file():
            yield match[2], "missing; prepare the data again"
        elif sha256(folder / match[2]) != match[1]:
            yield match[2], f"changed since it was made, by {SUMS}; prepare the data again"
        else:
            yield match[2], ""
    folders = {folder / RAW, *(index.parent for index in indices(folder))}
    for name in with_checksums(folder, folders):
        if name not in named:
            yield name, f"without a checksum in {SUMS}, which is cut; prepare the data again"
