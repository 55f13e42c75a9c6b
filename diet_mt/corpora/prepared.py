"""Integrity of prepared data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..errors import UserError
from ..files import lines_in, raw_lines, sha256
from ..stages.engine import RAW, SETTINGS, SUMS, missing_stages, with_checksums
from .binarized import dictionary_size, faults, indices, sentences_in

_SUM = re.compile(r"([0-9a-f]{64})  (\S.*)")
# The text of an .idx file: the first of these that exists.
_TEXT = ("clean/{split}.{part}", f"{RAW}/{{split}}.{{part}}", "pieces/{split}")


def is_prepared(folder: Path) -> bool:
    """Whether a folder holds prepared data, as a whole or binarized alone."""
    names = (SETTINGS, SUMS, "dict*.txt", "bin/dict*.txt")
    return folder.is_dir() and any(any(folder.glob(name)) for name in names)


def whole_of(folder: Path) -> Path:
    """The prepared corpus of a folder ``bin``; otherwise the folder."""
    above = folder.absolute().parent
    return folder.parent if folder.name == "bin" and (above / SETTINGS).is_file() else folder


def check_prepared(folder: Path) -> tuple[list[str], str]:
    """Faults, a line each, and a summary of the folder.

    Checks the results of all stages, the files' checksums, the numbers of sentences against the
    text, both sides of every split, and every token against its dictionary.
    """
    folder = whole_of(folder)
    wrong = list(faults(folder, tokens=True))
    damaged = {fault.split(": ", 1)[0].split(", line ")[0] for fault in wrong}
    counts: dict[str, int] = {}
    for index in indices(folder):
        try:
            count = sentences_in(index)
        except UserError:  # one of the faults
            continue
        counts[index.name.split(".")[0]] = count
        text = _text_of(folder, index)
        if text and lines_in(text) != count:
            wrong.append(f"{index}: {count:,} sentences, but {text} has {lines_in(text):,} lines")
    wrong += [
        f"{folder / name}: missing; prepare the data again" for name in missing_stages(folder)
    ]
    sums = 0
    for name, fault in _sums(folder):
        sums += 1
        if fault and str(folder / name) not in damaged:
            wrong.append(f"{folder / name}: {fault}")
    words = [f"{split} {count:,}" for split, count in counts.items()]
    dictionaries = sorted(folder.rglob("dict*.txt")) if not wrong else []
    words += [f"{path.name} {dictionary_size(path):,}" for path in dictionaries]
    words.append(f"checksums of {sums} files" if sums else f"no {SUMS}")
    return wrong, ", ".join(words)


def _text_of(folder: Path, index: Path) -> Path | None:
    """The text of an .idx file: of a language, of a part of an example, or all."""
    split, _, rest = index.stem.partition(".")
    part = rest.rpartition(".")[2] or index.parent.name
    for name in _TEXT:
        path = folder / name.format(split=split, part=part)
        if path.is_file():
            return path
    return None


def _sums(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and fault, if any, of each file that has a checksum."""
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
    parts = {folder / RAW, *(index.parent for index in indices(folder))}
    for name in with_checksums(folder, parts):
        if name not in named:
            yield name, f"without a checksum in {SUMS}, which is cut; prepare the data again"
