"""WMT18 news translation, German or Czech with English: the training data of the paper's Table 4.

Europarl v7, Common Crawl and News Commentary v13 to train on; newstest2017 to validate, and
newstest2018, as SacreBLEU has it, to test. The training text is put together byte by byte, since it
is cleaned afterwards. WMT publishes newstest2017 as SGML in name only, which no parser reads: like
SacreBLEU, this looks for ``<seg id="7">Gerd &amp; Co.</seg>`` and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..errors import UserError
from ..files import make_folder, raw_bytes, raw_lines, writing_bytes
from ..stages.engine import Preparation, Stage, room_for
from ..stages.progress import say
from . import testset
from .download import Source, extract, fetch
from .parallel import paired, write_pairs
from .settings import TextSettings
from .shared_stages import prepared

TEST_SET, _TEST, _DEV = "wmt18", "test.tgz", "dev.tgz"
_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)
_BEGINNING = re.compile(r"<seg\b", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#(\d+)|#x([0-9a-fA-F]+)|(amp|lt|gt|quot|apos));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


def preparation(out: Path, text: TextSettings, origin: Source, downloads: Path) -> Preparation:
    """Archives -> ``out/bin``; what is downloaded is in ``downloads``, for both pairs."""
    pair, (source, target) = "-".join(text.pair), text.pair
    extracted, training = out / "extracted", origin.entry["training"]
    names = [*training, _DEV] if not extracted.exists() else []
    tests = [_TEST] if not testset.cached(TEST_SET, pair) else []
    if not (out / "raw").exists():
        origin.files([*names, *tests])
    stem = f"dev/newstest2017-{source}{target}"
    dev = [f"{stem}-src.{source}.sgm", f"{stem}-ref.{target}.sgm"]

    def extract_all(to: Path) -> None:
        # The test set, too: what cannot be downloaded is better known before the rest begins.
        files = fetch(origin, [*names, *tests], downloads)
        for archive, stem in training.items():
            extract(files[archive], to, [f"{stem}.{pair}.{lang}" for lang in text.pair])
        extract(files[_DEV], to, dev)

    def make_raw(to: Path) -> None:
        stems = [f"{Path(stem).name}.{pair}" for stem in training.values()]
        pairs = concatenate([extracted / stem for stem in stems], text.pair, to)
        say(f"train: {pairs:,} pairs")
        write_pairs(to, "valid", text.pair, segments_of(*(extracted / Path(f).name for f in dev)))
        testset.write(TEST_SET, pair, to, fetch(origin, tests, downloads).get(_TEST))

    does = f"files of {', '.join([*training, _DEV])} from {origin.folder or 'the web'}"
    room = partial(room_for, 105, extracted)
    first = [
        Stage("extracted", does, extract_all),
        Stage("raw", "all training text; newstest2017 and 2018", make_raw, room),
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
    """Sentence pairs of two SGML files. Raises UserError where they differ in length."""
    sides = read_segments(source), read_segments(target)
    if len(sides[0]) != len(sides[1]):
        raise UserError(f"{source}: {len(sides[0])} segments, but {target} has {len(sides[1])}")
    return list(zip(*sides, strict=True))


def read_segments(path: Path) -> list[str]:
    """The sentences of a file, entities replaced, each run of white space as one space. Raises
    UserError where the file is not UTF-8, or its segments are not whole.
    """
    try:
        text = raw_bytes(path).decode("utf-8")
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
    return _NAMED[name] if name else chr(int(decimal) if decimal else int(hexadecimal, 16))
