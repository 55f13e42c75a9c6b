"""LibreOffice 7.4.7, help and interface: English with German or Czech.

From the published archive of translations, or from texts that were made of it. A message is taken
where the English side has 4 to 100 words, the other 3 to 100, and the longer side less than 2.5
times the characters of the shorter. Pieces of 60 consecutive messages of a file are in one split,
drawn by chance, so that no page's neighbours are in two. An English text counts once, whatever its
case and punctuation: in test before valid, in valid before train.
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
from ..files import copy, make_folder, write_lines
from ..stages.engine import Preparation, Stage
from ..stages.progress import say
from .fetch import Origin, fetch
from .manifest import read_manifest
from .parallel import SPLITS, check
from .settings import TextSettings
from .shared_stages import prepared

MANIFEST = Path(__file__).with_suffix(".manifest")
ARCHIVE = "libreoffice_7.4.7.orig-translations.tar.xz"
_PIECE = 60  # messages
# Numbers of the pieces that are held out, over all files of a language.
HELD_OUT = {
    "de": {
        "test": "7 27 35 54 60 67 169 190 199 204 238 271 278 319 342 346 364 457 497 503 508 517"
        " 532 538 543 559 581 587 640 653 677 692 707 727 782 790 812 816 832",
        "valid": "94 124 173 245 331 354 362 367 401 404 444 469 520 554 555 591 669 687 828 830"
        " 831",
    },
    "cs": {
        "test": "29 40 54 60 68 117 119 140 147 179 186 217 225 320 345 375 436 442 463 504 516"
        " 520 524 530 550 556 588 595 616 620 668 685 689 702 736 745 779 790",
        "valid": "95 124 189 259 286 346 349 354 357 365 374 447 561 562 593 599 624 636 653 662"
        " 678 726 732 737 826 841 843 844",
    },
}
_STRING = re.compile(r'(?:(msg\w+(?:\[\d\])?)\s+)?"(.*)"\s*')
_ESCAPES = {"n": "\n", "t": "\t"}
_DROPPED = re.compile(r"\\n|<[^<>]*>")  # written-out line breaks, and tags
_BEFORE_MARK = re.compile(r" ([.,;:!?)])")
Pair = tuple[str, str]  # English, and the other language


def preparation(out: Path, text: TextSettings, origin: Origin) -> Preparation:
    """Archive or texts -> ``out/bin``. Raises UserError where the user's folder lacks a file."""
    other = next(lang for lang in text.pair if lang != "en")
    names = {
        f"{split}.{lang}": f"en-{other}.{split}.{lang}" for split in SPLITS for lang in text.pair
    }
    packed = origin.folder is None or (origin.folder / ARCHIVE).is_file()
    wanted = [ARCHIVE] if packed else [*names.values()]
    if not (out / "raw").exists():
        origin.items(wanted)

    def make_raw(to: Path) -> None:
        found = fetch(origin, wanted, out / "fetched")
        make_folder(to)
        if packed:
            splits = split(messages(found[ARCHIVE], other), HELD_OUT[other])
            for name, pairs in splits.items():
                for lang, side in zip(("en", other), zip(*pairs, strict=True), strict=True):
                    write_lines(to / f"{name}.{lang}", side)
                say(f"{name}: {len(pairs):,} pairs")
            listed = read_manifest(origin.manifest)
            for file, name in names.items():
                if fault := listed[name].fault_of(to / file):
                    raise UserError(f"{found[ARCHIVE]}: not the expected text {name}: {fault}")
        else:
            for file, name in names.items():
                copy(found[name], to / file)
        check(to, *text.pair)
        shutil.rmtree(out / "fetched")

    does = f"{', '.join(wanted)} from {origin.folder or 'the web'}"
    return prepared(out, [Stage("raw", does, make_raw)], text)


def messages(archive: Path, lang: str) -> list[list[Pair]]:
    """The messages of each translated file that are long enough, and of like length on both sides;
    files in the order of their paths. Raises UserError where the archive cannot be unpacked.
    """
    found = {}
    try:
        with tarfile.open(archive, "r|xz") as tar:
            for entry in tar:
                path = PurePosixPath(entry.name.partition(f"translations/source/{lang}/")[2])
                content = tar.extractfile(entry) if path.suffix == ".po" else None
                if content is not None:
                    found[path] = [pair for pair in catalogue(content) if _is_taken(*pair)]
    except (tarfile.TarError, EOFError, LZMAError) as error:
        raise UserError(f"{archive}: cannot be unpacked ({error}); replace it") from None
    if not found:
        raise UserError(f"{archive}: no translations/source/{lang}/**/*.po; replace it")
    return [found[path] for path in sorted(found)]


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


def split(files: list[list[Pair]], held_out: dict[str, str]) -> dict[str, list[Pair]]:
    """The messages of each split. ``held_out``: the numbers of the pieces of ``valid`` and
    ``test``.
    """
    pieces = [file[at : at + _PIECE] for file in files for at in range(0, len(file), _PIECE)]
    of = {int(number): name for name, numbers in held_out.items() for number in numbers.split()}
    seen: set[str] = set()
    found: dict[str, list[Pair]] = {}
    for name in ("test", "valid", "train"):
        found[name] = []
        for number, piece in enumerate(pieces):
            for pair in piece if of.get(number, "train") == name else ():
                key = re.sub(r"\W+", " ", pair[0].lower())
                if key not in seen:
                    seen.add(key)
                    found[name].append(pair)
    return found
