"""Byte-pair encoding, one code for both languages, by subword-nmt.

Sennrich, Haddow and Birch (2016), "Neural Machine Translation of Rare Words with Subword Units",
arXiv:1508.07909. A subword that its word continues after ends in ``@@``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path

from subword_nmt import learn_bpe as learner
from subword_nmt.apply_bpe import BPE

from ..files import writing
from ..stages.pool import in_order
from ..stages.progress import Progress, ticking
from .parallel import read_lines
from .settings import BPE_WORDS

_SEPARATOR = "@@"
_COUNT_CHUNK = 10_000  # lines: the larger, the fewer times a frequent word's count is added
_CACHED = 100_000  # words whose split a process remembers: about 30 MiB

# The library's own bar would write into logs, too.
learner.tqdm = partial(ticking, what="codes", unit="merges")


def learn(
    files: Iterable[Path],
    out: Path,
    merges: int,
    *,
    workers: int = 1,
    max_words: int = BPE_WORDS,
) -> None:
    """Learns ``merges`` merge operations from all files together and writes them to ``out``.

    Memory grows with the number of different words, not with the text: about 2 KiB for each. Raises
    UserError as ``read_lines``.

    Args:
        max_words: Words that learning looks at, the most frequent first. Rarer ones hardly change
            the merges, but web text has millions of them.
    """
    counts = count_words(files, workers)
    words = sorted(counts, key=lambda word: (-counts[word], word))[:max_words]
    listed = [f"{word} {counts[word]}" for word in sorted(words)]
    with writing(out) as codes:
        learner.learn_bpe(listed, codes, merges, is_dict=True)


def count_words(files: Iterable[Path], workers: int = 1) -> Counter[str]:
    """How often each word, what spaces separate, occurs in all files together."""
    counts: Counter[str] = Counter()
    for file in files:
        progress = Progress(f"words of {file.name}")
        for lines, some in in_order(_count, read_lines(file), workers, _COUNT_CHUNK):
            counts.update(some)
            progress.add(lines)
        progress.done()
    return counts


def _count(lines: list[str]) -> tuple[int, Counter[str]]:
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.split())
    return len(lines), counts


@cache
def load(codes: Path) -> BPE:
    """The encoder for a code file of ``learn``; its method ``process_line`` splits a line."""
    with open(codes, encoding="utf-8", newline="\n") as file:
        return BPE(file, separator=_SEPARATOR)


def split(lines: list[str], model: Path) -> list[str]:
    """Splits the words of tokenised lines with the code file ``model``."""
    bpe = load(model)
    if len(bpe.cache) > _CACHED:
        bpe.cache.clear()
    return [bpe.process_line(line) for line in lines]


def join(tokens: str) -> str:
    """Undoes the splitting: ``"see@@ ing it"`` becomes ``"seeing it"``."""
    return (tokens + " ").replace(_SEPARATOR + " ", "").rstrip()
