"""Test sets: a part of the data, a pair of text files, or a set of SacreBLEU."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ..corpora import testset
from ..corpora.binarized import language_pair, preprocess
from ..corpora.clean import is_cleaned, mended_sources, mended_words, tidy_sources
from ..corpora.parallel import SECOND_TEST, read_lines, read_sides
from ..corpora.subwords import from_text
from ..errors import UserError
from ..files import make_folder, sha256, write_lines

Pair = tuple[str, str]  # source and target language


@dataclass(frozen=True)
class TestSet:
    """``data`` is a binarized folder, with the source sentences at least, under ``subset``."""

    __test__ = False  # no tests for pytest

    data: Path
    pair: Pair
    subset: str
    references: Path
    label: str  # in names of files
    name: str  # in the record
    mended: str = ""  # source lines that normalization changed, "3 lines, rules 1"


def of_data(data: Path, pair: Pair, subset: str) -> TestSet:
    """A part of the data, ``test`` or its like; ``subset`` may be empty.

    Raises UserError where there is none, or its untouched sentences are not in DATA/../raw.
    """
    subset = subset or subset_of(data, pair)
    language_pair(data, subset)
    folder = data.absolute().parent
    references = folder / "raw" / f"{subset}.{pair[1]}"
    if not references.is_file():
        raise UserError(
            f"{references}: missing, and scores are against untouched text; prepare the data again"
        )
    is_reverse = pair != language_pair(data, subset)
    mended = mended_sources(folder, subset) if is_reverse == (subset == SECOND_TEST) else ""
    return TestSet(data, pair, subset, references, subset, f"{folder.name} {subset}", mended)


def subset_of(data: Path, pair: Pair) -> str:
    """The test set for a checkpoint of the direction ``pair``.

    SacreBLEU's sets need not hold the same text in both directions. Where they do not, preparation
    keeps that of the reverse direction as ``test1``, and a score on the other one would not be that
    of the test set that the row names.
    """
    is_reverse = pair != language_pair(data, "test")
    return SECOND_TEST if is_reverse and any(data.glob(f"{SECOND_TEST}.*")) else "test"


def of_text(data: Path, pair: Pair, source: Path, reference: Path, folder: Path) -> TestSet:
    """A pair of text files, a sentence a line, made ready for fairseq-generate in ``folder``.

    Raises UserError where a file is not UTF-8, has an empty line, or they differ in length.
    """
    sources, _ = read_sides(source, reference)
    mark = hashlib.sha256("\n".join(sources).encode()).hexdigest()[:8]
    label = f"{re.sub(r'[^A-Za-z0-9_-]', '_', source.stem)}-{mark}"
    lines, mended = _as_in_training(data, sources)
    made = _binarized(data, pair, lines, folder / f"{label}.{'-'.join(pair)}")
    return TestSet(made, pair, "test", reference, label, reference.name, mended)


def of_sacrebleu(data: Path, pair: Pair, name: str, folder: Path) -> TestSet:
    """A test set that SacreBLEU knows: from its cache, else downloaded by it.

    Raises UserError where it does not know it in this direction, or cannot get it.
    """
    source, reference = testset.sentences(name, "-".join(pair))
    lines, mended = _as_in_training(data, source)
    label = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    place = folder / f"{label}.{'-'.join(pair)}"
    made = _binarized(data, pair, lines, place)
    references = place / f"reference.{pair[1]}"
    write_lines(references, reference)
    return TestSet(made, pair, "test", references, label, name, mended)


def _as_in_training(data: Path, lines: list[str]) -> tuple[list[str], str]:
    """Source lines, normalized where the training text of ``data`` was; and ``TestSet.mended``."""
    if not is_cleaned(data.absolute().parent):
        return lines, ""
    tidied, count = tidy_sources(lines)
    return tidied, mended_words(count)


def _binarized(data: Path, pair: Pair, lines: Sequence[str], place: Path) -> Path:
    """The folder of the sentences, split by the subword model next to the data; made once."""
    made = place / "bin"
    text = place / f"test.{pair[0]}"
    split = from_text(lines, pair[0], data)
    if made.is_dir() and text.is_file() and list(read_lines(text)) == split:
        return made
    shutil.rmtree(place, ignore_errors=True)
    make_folder(place)
    write_lines(text, split)
    part = place / "bin.part"
    words = ["--source-lang", pair[0], "--target-lang", pair[1], "--only-source"]
    words += ["--srcdict", str(data / f"dict.{pair[0]}.txt")]
    with TemporaryDirectory() as folder:  # fairseq cuts --testpref at commas, and systems have them
        shutil.copy(text, folder)
        preprocess([*words, "--testpref", f"{folder}/test"], part, place / "preprocess.log")
    for lang in pair:
        shutil.copyfile(data / f"dict.{lang}.txt", part / f"dict.{lang}.txt")
    os.replace(part, made)
    return made


def source_sha256(test: TestSet) -> str:
    """Of the binarized source sentences, whichever way round the folder has the pair."""
    own = "-".join(language_pair(test.data, test.subset))
    stem = test.data / f"{test.subset}.{own}.{test.pair[0]}"
    files = [Path(f"{stem}.{suffix}") for suffix in ("bin", "idx")]
    return hashlib.sha256(
        "".join(sha256(file) for file in files if file.is_file()).encode()
    ).hexdigest()
