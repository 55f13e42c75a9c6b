"""LibreOffice 7.4.7, help and interface: English with German or Czech.

From the published archive of translations, or from texts that were made of it. A message is taken
where the English side has 4 to 100 words, the other 3 to 100, and the longer side less than 2.5
times the characters of the shorter. Pieces of 60 consecutive messages of a file are in one split,
drawn by chance (``corpora.yaml``), so that no page's neighbours are in two. An English text counts
once, whatever its case and punctuation: in test before valid, in valid before train.
"""

from __future__ import annotations

import re
import shutil
import tarfile
from collections.abc import Iterator
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO

from ..errors import UserError
from ..files import copy, make_folder
from ..stages.engine import Preparation, Stage
from .download import Source, fetch
from .parallel import SPLITS, check, write_pairs
from .settings import TextSettings
from .shared_stages import prepared

_PIECE = 60  # messages
_STRING = re.compile(r'(?:(msg\w+(?:\[\d\])?)\s+)?"(.*)"\s*')
_ESCAPES = {"n": "\n", "t": "\t"}
_DROPPED = re.compile(r"\\n|<[^<>]*>")  # written-out line breaks, and tags
_BEFORE_MARK = re.compile(r" ([.,;:!?)])")
Pair = tuple[str, str]  # English, and the other language


def preparation(out: Path, text: TextSettings, source: Source) -> Preparation:
    """Archive or texts -> ``out/bin``."""
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
        check(to, *text.pair)
        shutil.rmtree(out / "fetched")

    does = f"{', '.join(wanted)} from {source.folder or 'the web'}"
    return prepared(out, [Stage("raw", does, make_raw)], text)


def messages(archive: Path, lang: str) -> list[list[Pair]]:
    """The messages of each translated file that are long enough, and of like length on both sides;
    files in the order of their paths. Raises UserError where the archive cannot be unpacked.
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
    text = _DROPPED.sub(" ", text).replace("~", "")  # which marks a menu's accelerator
    return _BEFORE_MARK.sub(r"\1", " ".join(text.split()))


def _is_taken(english: str, other: str) -> bool:
    words = len(english.split()), len(other.split())
    if not (4 <= words[0] <= 100 and 3 <= words[1] <= 100) or english == other:
        return False
    return 0.4 < len(other) / len(english) < 2.5


def split(files: list[list[Pair]], held_out: dict[str, list[int]]) -> dict[str, list[Pair]]:
    """The messages of each split; ``held_out``: numbers of the pieces of ``valid`` and ``test``."""
    pieces = [file[at : at + _PIECE] for file in files for at in range(0, len(file), _PIECE)]
    split_of = {number: name for name, numbers in held_out.items() for number in numbers}
    seen: set[str] = set()
    splits: dict[str, list[Pair]] = {}
    for name in ("test", "valid", "train"):
        splits[name] = []
        for number, piece in enumerate(pieces):
            for pair in piece if split_of.get(number, "train") == name else ():
                key = re.sub(r"\W+", " ", pair[0].lower())
                if key not in seen:
                    seen.add(key)
                    splits[name].append(pair)
    return splits
