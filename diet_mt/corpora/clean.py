"""Cleaning of training pairs: normalization of characters, then filters of whole pairs.

A pair is dropped, and counted, for its first fault: a side that is not UTF-8, empty after
normalization (``tidy``), overlong, much longer than the other, or in another language (if it is
long enough for identification); or a duplicate pair. Of validation and test sets, only the sources
are normalized: the first language, or the second in ``test1``, the test set of the reverse
direction.

Languages are identified by the model of py3langid for 139 languages, a maintained version of
langid.py (Lui and Baldwin 2012, "langid.py: An Off-the-shelf Language Identification Tool", ACL).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ..system.errors import UserError
from ..system.files import copy, lines_of, make_folder, raw_lines, write_lines, writing
from ..system.process import in_order
from ..system.progress import Progress, say
from .parallel import BYTE_ORDER_MARK, SECOND_TEST, paired, splits_in
from .settings import Limits

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

VERSION = 1  # of the normalization, stored in rows; increase it when its results change
MARK = "byte order marks"
CARRIAGE_RETURN = "Windows line ends"
WINDOWS = "Windows-1252 characters"
CONTROL = "control characters"
INVISIBLE = "zero-width and private characters"
COMPOSED = "not in NFC"
SPACES = "unusual white space"
MENDED = (MARK, CARRIAGE_RETURN, WINDOWS, CONTROL, INVISIBLE, COMPOSED, SPACES)

INVALID = "invalid UTF-8"
EMPTY = "empty side"
OVERLONG = "overlong side"
RATIO = "length ratio"
LANGUAGE = "wrong language"
DUPLICATE = "duplicate pair"
DROPPED = (INVALID, EMPTY, OVERLONG, RATIO, LANGUAGE, DUPLICATE)

COUNTS = "clean.tsv"  # in the folder of a cleaned corpus
_SOURCES, _RULES = "source lines mended", "rules"

# In text, these control characters are Windows-1252 decoded as Latin-1: U+0084 and U+0093 are
# quotation marks, U+0085 is an ellipsis and not a line end.
_WINDOWS = re.compile("[\x80-\x9f]")
_CP1252 = {code: bytes([code]).decode("cp1252", "ignore") for code in range(0x80, 0xA0)}
# The rest of Unicode's Cc, except white space.
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f]")
# Cf (soft hyphens, joiners, direction marks, tags), Co (private use), 16-bit noncharacters.
_INVISIBLE = re.compile(
    "[\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\ufdd0-\ufdef\ufffe\uffff\ue000-\uf8ff"
    "\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0001\U000e0020-\U000e007f\U000f0000-\U000ffffd\U00100000-\U0010fffd]"
)

# Groups of languages that are often confused, which count as one language.
_ALIKE = ({"cs", "sk"}, {"de", "lb", "nds"}, {"en", "pcm"})
_WITHOUT = "or clean with --certainty 2, which identifies no languages"
# Added to both lengths before they are compared, so that "Yes." may become "Ja, gern.".
_SLACK = 15


def tidy(line: str, mended: Counter[str]) -> str:
    """A line (without ``\\n``) in canonical composition (NFC), with white space normalized.

    Removes byte order marks, control, zero-width and private characters, and corrects Windows-1252
    decoded as Latin-1. Adds the changes to ``mended``, by the names in ``MENDED``.
    """
    if line.startswith(BYTE_ORDER_MARK):
        mended[MARK] += 1
        line = line[1:]
    if line.endswith("\r"):
        mended[CARRIAGE_RETURN] += 1
        line = line[:-1]
    if _CONTROL.search(line):
        mended[CONTROL] += 1
        line = _CONTROL.sub("", line)
    if not line.isascii():
        if _WINDOWS.search(line):
            mended[WINDOWS] += 1
            line = line.translate(_CP1252)
        if _INVISIBLE.search(line):
            mended[INVISIBLE] += 1
            line = _INVISIBLE.sub("", line)
        if not unicodedata.is_normalized("NFC", line):
            mended[COMPOSED] += 1
            line = unicodedata.normalize("NFC", line)
    plain = " ".join(line.split())
    mended[SPACES] += plain != line
    return plain


def tidy_sources(lines: Iterable[str]) -> tuple[list[str], int]:
    """Normalized sources of a validation or test set, and the number of changed lines."""
    # Lines that would become empty are not changed, because they have a reference.
    given = list(lines)
    tidied = [tidy(line, Counter()) or line for line in given]
    return tidied, sum(map(str.__ne__, given, tidied))


@dataclass
class Cleaned:
    """Remaining pairs, and counts of read, dropped and normalized ones."""

    read: int = 0
    pairs: list[tuple[str, str]] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)  # pairs, by the names in DROPPED
    mended: Counter[str] = field(default_factory=Counter)  # sides, by the names in MENDED


def clean(pairs: list[tuple[bytes, bytes]], limits: Limits) -> Cleaned:
    """Normalizes and filters pairs, except for duplicates, which requires the whole corpus."""
    result = Cleaned(len(pairs))
    for raw in pairs:
        try:
            source, target = (side.removesuffix(b"\n").decode("utf-8") for side in raw)
        except UnicodeDecodeError:
            result.dropped[INVALID] += 1
            continue
        source, target = tidy(source, result.mended), tidy(target, result.mended)
        fault = fault_of(source, target, limits)
        if fault:
            result.dropped[fault] += 1
        else:
            result.pairs.append((source, target))
    return result


def fault_of(source: str, target: str, limits: Limits) -> str:
    """The reason to drop a pair; empty if it is valid."""
    if not source or not target:
        return EMPTY
    for side in (source, target):
        if len(side) > limits.max_chars or side.count(" ") >= limits.max_words:
            return OVERLONG
    shorter, longer = sorted((len(source), len(target)))
    if longer + _SLACK > limits.ratio * (shorter + _SLACK):
        return RATIO
    if limits.certainty <= 1:
        for side, lang in zip((source, target), limits.langs, strict=True):
            if len(side) >= limits.language_chars and is_other(side, lang, limits.certainty):
                return LANGUAGE
    return ""


@cache
def _identifier() -> LanguageIdentifier:
    if find_spec("py3langid") is None:
        install = "pip install --no-deps py3langid"
        raise UserError(f"py3langid is not installed; install it ({install}), {_WITHOUT}")
    # Not at the top: it needs a newer numpy than stock fairseq can have.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def need_known(langs: Iterable[str]) -> None:
    """Raises :class:`UserError` for a language code that py3langid does not support."""
    for lang in langs:
        if lang not in _identifier().nb_classes:
            raise UserError(f"language {lang}: unknown to py3langid; use a known code, {_WITHOUT}")


def is_other(line: str, lang: str, certainty: float) -> bool:
    """Whether a line is identified as another language than ``lang``.

    ``certainty``: minimum probability, 0 to 1, against lines of names, numbers and quotations.
    """
    other, probability = _identifier().classify(line)
    group = next((alike for alike in _ALIKE if other in alike), {other})
    if lang in group:
        return False
    if probability < certainty and len(group) > 1:
        probability = sum(p for name, p in _identifier().rank(line) if name in group)
    return bool(probability >= certainty)


def digest(source: str, target: str) -> bytes:
    """Hash of 8 bytes: 4.5 million take 500 MB; the probability of a collision is below 1e-6."""
    return hashlib.blake2b(f"{source}\n{target}".encode(), digest_size=8).digest()


def clean_corpus(source: Path, out: Path, limits: Limits, counts: Path, workers: int = 1) -> None:
    """Writes the cleaned corpus, and lines ``KIND<TAB>WHAT<TAB>COUNT`` to the file ``counts``."""
    make_folder(out)
    mended = []
    for split in splits_in(source, limits.langs[0])[1:]:
        names = [f"{split}.{lang}" for lang in limits.langs]
        original, reference = reversed(names) if split == SECOND_TEST else names
        copy(source / reference, out / reference)
        lines, count = tidy_sources(lines_of(source / original))
        write_lines(out / original, lines)
        mended.append((_SOURCES, split, count))
    total = clean_files(source, out, limits, workers)
    rows = [
        ("pairs", "read", total.read),
        *(("dropped", name, total.dropped[name]) for name in DROPPED),
        ("pairs", "kept", total.read - sum(total.dropped.values())),
        *(("mended", name, total.mended[name]) for name in MENDED),
        *mended,
        (_RULES, "version", VERSION),
    ]
    with writing(counts) as file:
        for kind, what, count in rows:
            file.write(f"{kind}\t{what}\t{count}\n")
            say(f"{kind}, {what}: {count:,}")


def clean_files(source: Path, out: Path, limits: Limits, workers: int) -> Cleaned:
    """Writes ``out/train.LANG``; returns counts, without pairs. Raises UserError if none remain."""
    total, progress = Cleaned(), Progress("pairs")
    seen: set[bytes] = set()
    files = [f"train.{lang}" for lang in limits.langs]
    pairs = paired(source / files[0], source / files[1], raw_lines)
    with writing(out / files[0]) as src, writing(out / files[1]) as tgt:
        for part in in_order(partial(clean, limits=limits), pairs, workers):
            for pair in part.pairs:
                if (pair_digest := digest(*pair)) in seen:
                    total.dropped[DUPLICATE] += 1
                    continue
                seen.add(pair_digest)
                src.write(pair[0] + "\n")
                tgt.write(pair[1] + "\n")
            total.read += part.read
            total.dropped += part.dropped
            total.mended += part.mended
            progress.add(part.read)
        if not seen:
            raise UserError(f"{source}: every training pair is dropped; see the cleaning limits")
    progress.done()
    return total


def is_cleaned(corpus: Path) -> bool:
    """Whether the training text of a prepared corpus was cleaned."""
    return (corpus / COUNTS).is_file()


def mended_words(count: int, version: int = VERSION) -> str:
    """Note in the row of a test set, ``3 lines, rules 1``; empty if no line changed."""
    return f"{count} lines, rules {version}" if count else ""


def mended_sources(corpus: Path, split: str) -> str:
    """:func:`mended_words` for a split of a prepared corpus; empty if it is not cleaned."""
    if not is_cleaned(corpus):
        return ""
    rows = [line.split("\t") for line in lines_of(corpus / COUNTS)]
    counts = {(row[0], row[1]): int(row[2]) for row in rows}
    return mended_words(counts.get((_SOURCES, split), 0), counts.get((_RULES, "version"), 0))
