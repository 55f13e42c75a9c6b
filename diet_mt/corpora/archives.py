"""Corpora published as archives: WMT18 news, and the translations of LibreOffice.

WMT18, German or Czech with English, is the training data of the paper's Table 4: Europarl v7,
Common Crawl and News Commentary v13, concatenated as bytes, because cleaning follows. The
validation set is newstest2017, the test set SacreBLEU's newstest2018.

LibreOffice 7.4.7, help and interface, is English with German or Czech, from the archive or from
text files extracted from it. Blocks of 60 consecutive messages of a file are assigned to a split at
random (``corpora.yaml``), so that most neighbours are in the same split. English duplicates, up to
case and punctuation, are dropped: test has priority over valid, and valid over train.
"""

from __future__ import annotations

import re
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO

from ..system.engine import Preparation, Stage
from ..system.errors import UserError
from ..system.files import copy, make_folder, raw_bytes, raw_lines, writing_bytes
from ..system.progress import say
from . import testset
from .download import Source, extract, fetch
from .parallel import SPLITS, check, paired, write_pairs
from .settings import TextSettings
from .shared_stages import prepared

_TEST_SET, _TEST, _DEV = "wmt18", "test.tgz", "dev.tgz"
_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)
_BEGINNING = re.compile(r"<seg\b", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#(\d+)|#x([0-9a-fA-F]+)|(amp|lt|gt|quot|apos));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}

_BLOCK = 60  # messages
_STRING = re.compile(r'(?:(msg\w+(?:\[\d\])?)\s+)?"(.*)"\s*')
_ESCAPES = {"n": "\n", "t": "\t"}
_MARKUP = re.compile(r"\\n|<[^<>]*>")  # written-out line breaks, and tags
_BEFORE_MARK = re.compile(r" ([.,;:!?)])")
Pair = tuple[str, str]  # English, and the other language


def wmt18(out: Path, text: TextSettings, source: Source, downloads: Path) -> Preparation:
    """The preparation of WMT18. ``downloads``: folder of archives, shared by both pairs."""
    pair, (src, tgt) = "-".join(text.pair), text.pair
    extracted, training = out / "extracted", source.entry["training"]
    names = [*training, _DEV] if not extracted.exists() else []
    tests = [_TEST] if not testset.cached(_TEST_SET, pair) else []
    if not (out / "raw").exists():
        source.files([*names, *tests])
    stem = f"dev/newstest2017-{src}{tgt}"
    dev = [f"{stem}-src.{src}.sgm", f"{stem}-ref.{tgt}.sgm"]

    def extract_all(to: Path) -> None:
        # Includes the test set, so that a failed download is reported early.
        files = fetch(source, [*names, *tests], downloads)
        for archive, stem in training.items():
            extract(files[archive], to, [f"{stem}.{pair}.{lang}" for lang in text.pair])
        extract(files[_DEV], to, dev)

    def make_raw(to: Path) -> None:
        stems = [f"{Path(stem).name}.{pair}" for stem in training.values()]
        pairs = concatenate([extracted / stem for stem in stems], text.pair, to)
        say(f"train: {pairs:,} pairs")
        write_pairs(to, "valid", text.pair, segments_of(*(extracted / Path(f).name for f in dev)))
        testset.write(_TEST_SET, pair, to, fetch(source, tests, downloads).get(_TEST))

    does = f"files of {', '.join([*training, _DEV, *tests])} from {source.folder or 'the web'}"
    first = [
        Stage("extracted", does, extract_all),
        Stage("raw", "all training text; newstest2017 and 2018", make_raw),
    ]
    return prepared(out, first, text)


def concatenate(stems: Sequence[Path], langs: tuple[str, str], out: Path) -> int:
    """Writes ``out/train.LANG`` from ``STEM.LANG`` of every stem; returns the number of pairs."""
    make_folder(out)
    total = 0
    names = [f"train.{lang}" for lang in langs]
    with writing_bytes(out / names[0]) as source, writing_bytes(out / names[1]) as target:
        for stem in stems:
            before = total
            sides = [stem.with_name(f"{stem.name}.{lang}") for lang in langs]
            for pair in paired(sides[0], sides[1], raw_lines):
                for file, line in zip((source, target), pair, strict=True):
                    file.write(line.removesuffix(b"\n") + b"\n")
                total += 1
            say(f"{stem.name}: {total - before:,} pairs")
    return total


def segments_of(source: Path, target: Path) -> list[tuple[str, str]]:
    """Sentence pairs of two SGML files. Raises UserError for different numbers of sentences."""
    sides = read_segments(source), read_segments(target)
    if len(sides[0]) != len(sides[1]):
        raise UserError(f"{source}: {len(sides[0])} segments, but {target} has {len(sides[1])}")
    return list(zip(*sides, strict=True))


def read_segments(path: Path) -> list[str]:
    """Sentences of an SGML file, as plain text. Raises UserError if incomplete, empty or not UTF-8.

    WMT's files are not valid SGML; like SacreBLEU, this only searches for ``<seg>...</seg>``.
    """
    try:
        text = raw_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not valid UTF-8 (byte {error.start})") from None
    sentences = [" ".join(unescape(raw).split()) for raw in _SEGMENT.findall(text)]
    begun = len(_BEGINNING.findall(text))
    if not sentences or begun != len(sentences):
        raise UserError(f"{path}: {begun} segments begin and {len(sentences)} end; incomplete")
    if "" in sentences:
        raise UserError(f"{path}, segment {sentences.index('') + 1}: empty")
    return sentences


def unescape(text: str) -> str:
    """``text`` with XML's entities replaced once: ``&amp;lt;`` becomes ``&lt;``."""
    return _ENTITY.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    decimal, hexadecimal, name = match.groups()
    return _NAMED[name] if name else chr(int(decimal) if decimal else int(hexadecimal, 16))


def office(out: Path, text: TextSettings, source: Source) -> Preparation:
    """The preparation of LibreOffice's texts, from the archive or from text files."""
    other = next(lang for lang in text.pair if lang != "en")
    names = {
        f"{split}.{lang}": f"en-{other}.{split}.{lang}" for split in SPLITS for lang in text.pair
    }
    archive = source.entry["archive"]
    packed = source.folder is None or (source.folder / archive).is_file()
    wanted = [archive] if packed else [*names.values()]
    if not (out / "raw").exists():
        source.files(wanted)

    def make_raw(to: Path) -> None:
        files = fetch(source, wanted, out / "fetched")
        make_folder(to)
        if packed:
            splits = split(messages(files[archive], other), source.entry["held_out"][other])
            for name, pairs in splits.items():
                write_pairs(to, name, ("en", other), pairs)
            for made, expected in zip(names, source.listed(names.values()), strict=True):
                if fault := expected.fault_of(to / made):
                    raise UserError(f"{files[archive]}: not the expected {expected.name}: {fault}")
        else:
            for made, name in names.items():
                copy(files[name], to / made)
        check(to, text.pair)
        shutil.rmtree(out / "fetched")

    does = f"{', '.join(wanted)} from {source.folder or 'the web'}"
    return prepared(out, [Stage("raw", does, make_raw)], text)


def messages(archive: Path, lang: str) -> list[list[Pair]]:
    """Messages of each translated file, by path: 4 to 100 English words, 3 to 100 of another text,
    and a longer side of less than 2.5 times the characters. Raises UserError for a damaged file.
    """
    files = {}
    try:
        with tarfile.open(archive, "r|xz") as tar:
            for entry in tar:
                path = PurePosixPath(entry.name.partition(f"translations/source/{lang}/")[2])
                content = tar.extractfile(entry) if path.suffix == ".po" else None
                if content is not None:
                    files[path] = [pair for pair in catalogue(content) if _is_taken(*pair)]
    except (tarfile.TarError, EOFError, LZMAError) as error:
        raise UserError(f"{archive}: cannot be unpacked ({error}); replace it") from None
    if not files:
        raise UserError(f"{archive}: no translations/source/{lang}/**/*.po; replace it")
    return [files[path] for path in sorted(files)]


def catalogue(file: IO[bytes]) -> Iterator[Pair]:
    """Message and translation of each entry of a PO file, as plain text."""
    entry: dict[str, str] = {}
    key = ""
    for raw in (*file, b"\n"):
        line = raw.decode("utf-8")
        if match := _STRING.fullmatch(line):
            key = match[1] or key
            entry[key] = entry.get(key, "") + match[2]
        elif not line.strip() and entry:
            yield _plain(entry.get("msgid", "")), _plain(entry.get("msgstr", ""))
            entry = {}


def _plain(text: str) -> str:
    text = re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text)
    text = _MARKUP.sub(" ", text).replace("~", "")  # ~ marks the access key of a menu
    return _BEFORE_MARK.sub(r"\1", " ".join(text.split()))


def _is_taken(english: str, other: str) -> bool:
    words = len(english.split()), len(other.split())
    if not (4 <= words[0] <= 100 and 3 <= words[1] <= 100) or english == other:
        return False
    return 0.4 < len(other) / len(english) < 2.5


def split(files: list[list[Pair]], held_out: dict[str, list[int]]) -> dict[str, list[Pair]]:
    """The messages of each split; ``held_out``: block numbers of ``valid`` and ``test``."""
    blocks = [file[at : at + _BLOCK] for file in files for at in range(0, len(file), _BLOCK)]
    split_of = {number: name for name, numbers in held_out.items() for number in numbers}
    seen: set[str] = set()
    splits: dict[str, list[Pair]] = {}
    for name in ("test", "valid", "train"):
        splits[name] = []
        for number, block in enumerate(blocks):
            for pair in block if split_of.get(number, "train") == name else ():
                key = re.sub(r"\W+", " ", pair[0].lower())
                if key not in seen:
                    seen.add(key)
                    splits[name].append(pair)
    return splits
