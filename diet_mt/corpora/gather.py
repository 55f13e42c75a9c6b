"""Puts the parts of a training corpus together, and a development set beside it.

The training text is taken over byte by byte, since it is cleaned afterwards. The development set
comes from two of the SGML files in which WMT publishes its sets, a sentence in each segment:
``<seg id="7">Gerd &amp; Co.</seg>``. SGML in name only: no parser reads all of them, so this looks
for the segments and nothing else, as SacreBLEU does.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import UserError
from ..files import blocks, lines_in, make_folder, opened, raw_lines, write_lines, writing_bytes
from ..stages.progress import say
from .parallel import unequal

_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)
_BEGINNING = re.compile(r"<seg\b", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#(\d+)|#x([0-9a-fA-F]+)|(amp|lt|gt|quot|apos));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


def gather(stems: list[Path], langs: tuple[str, str], out: Path) -> int:
    """Writes ``out/train.LANG`` from ``STEM.LANG`` of every stem; returns the number of pairs.
    Raises UserError where a file is missing or empty, or the two sides of a stem differ in length.
    """
    make_folder(out)
    total = 0
    for stem in stems:
        counts = {}
        for path in (_side(stem, lang) for lang in langs):
            counts[path] = lines_in(path)
            if not counts[path]:
                raise UserError(f"{path}: no lines")
        fewer, more = sorted(counts.values())
        if more != fewer:
            raise unequal(sorted(counts, key=lambda path: -counts[path]), more, fewer)
        say(f"{stem.name}: {more:,} pairs")
        total += more
    for lang in langs:
        with writing_bytes(out / f"train.{lang}") as file:
            for stem in stems:
                with opened(_side(stem, lang)) as part:
                    for block in blocks(part):
                        file.write(block)
                if not block.endswith(b"\n"):
                    file.write(b"\n")
    return total


def _side(stem: Path, lang: str) -> Path:
    return stem.with_name(f"{stem.name}.{lang}")


def development(files: list[Path], langs: tuple[str, str], out: Path) -> int:
    """Writes ``out/valid.LANG`` from two SGML files; returns the number of pairs. Raises UserError
    as ``read_segments``; or where they differ in length.
    """
    sides = [read_segments(file) for file in files]
    if len(sides[0]) != len(sides[1]):
        counts = f"{len(sides[0])} segments, but {files[1]} has {len(sides[1])}"
        raise UserError(f"{files[0]}: {counts}; replace them by the originals")
    for lang, sentences in zip(langs, sides, strict=True):
        write_lines(out / f"valid.{lang}", sentences)
    return len(sides[0])


def read_segments(path: Path) -> list[str]:
    """The sentences of a file, entities replaced, each run of white space as one space. Raises
    UserError where the file cannot be read, is not UTF-8, holds no segment, one that does not end,
    or an empty one.
    """
    try:
        text = b"".join(raw_lines(path)).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not valid UTF-8 (byte {error.start})") from None
    sentences = [" ".join(unescape(raw).split()) for raw in _SEGMENT.findall(text)]
    begun = len(_BEGINNING.findall(text))
    if not sentences or begun != len(sentences):
        raise UserError(f"{path}: {begun} segments begin and {len(sentences)} end; not a whole set")
    if "" in sentences:
        raise UserError(f"{path}, segment {sentences.index('') + 1}: empty")
    return sentences


def unescape(text: str) -> str:
    """Replaces XML's entities, once: ``&amp;lt;`` becomes ``&lt;``."""
    return _ENTITY.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    decimal, hexadecimal, name = match.groups()
    if name:
        return _NAMED[name]
    return chr(int(decimal) if decimal else int(hexadecimal, 16))
