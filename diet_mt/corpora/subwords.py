"""Subwords: byte-pair encoding of Moses tokens (``bpe``), or SentencePiece on plain text (``spm``).

A binarized folder also contains the subword model of its text. The name of that file determines the
kind of subwords, and so how to join those of model output.

Byte-pair encoding: Sennrich, Haddow and Birch (2016), arXiv:1508.07909, by subword-nmt; all
subwords but the last of a word end in ``@@``. Moses tokens have the settings of fairseq's
``--tokenizer moses``: dashes between letters split off as ``@-@``, special characters escaped
(``&apos;``). So a model trained on this text can translate raw sentences with fairseq's tokenizer,
which, unlike this module, does not normalize punctuation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import chain
from pathlib import Path

from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer
from subword_nmt import learn_bpe as learner
from subword_nmt.apply_bpe import BPE

from ..system.errors import UserError
from ..system.files import write_lines, writing
from ..system.process import in_order
from ..system.progress import Progress, ticking
from . import pieces
from .parallel import read_lines
from .settings import BPE_WORDS, MODELS

_SEPARATOR = "@@"
_COUNT_CHUNK = 10_000  # lines; larger chunks transfer the counts of frequent words less often
_CACHED = 100_000  # words whose splits a process caches, about 30 MiB
# sacremoses spends most of its time rebuilding these two sets for every word with a full stop.
_LOWER = frozenset(MosesTokenizer.IsLower)
_ALPHA = frozenset(MosesTokenizer.IsAlpha)

# Replaces the library's progress bar, which would also be written to logs.
learner.tqdm = partial(ticking, what="codes", unit="merges")


@cache
def _moses(lang: str) -> tuple[MosesPunctNormalizer, MosesTokenizer, MosesDetokenizer]:
    tokenizer = MosesTokenizer(lang)
    tokenizer.islower = _LOWER.issuperset
    tokenizer.isanyalpha = lambda text: not _ALPHA.isdisjoint(text)
    return MosesPunctNormalizer(lang), tokenizer, MosesDetokenizer(lang)


def tokenize(text: str, lang: str) -> str:
    """Moses tokens of a sentence, with normalized punctuation, separated by single spaces."""
    normalizer, tokenizer, _ = _moses(lang)
    normal = normalizer.normalize(text)
    return str(tokenizer.tokenize(normal, aggressive_dash_splits=True, return_str=True))


def detokenize(tokens: str, lang: str) -> str:
    """The inverse of :func:`tokenize`, up to normalization and unusual spacing."""
    return str(_moses(lang)[2].detokenize(tokens.split()))


def tokenize_file(source: Path, out: Path, lang: str, workers: int) -> int:
    """Tokenizes a file; returns the number of lines. Raises :class:`UserError` for an empty one."""
    _moses(lang)  # built once, before workers are forked
    lines = in_order(partial(_tokenize_all, lang=lang), read_lines(source), workers)
    return write_lines(out, ticking(_nonempty(chain.from_iterable(lines), source), out.name))


def _tokenize_all(lines: list[str], lang: str) -> list[str]:
    return [tokenize(line, lang) for line in lines]


def _nonempty(lines: Iterable[str], source: Path) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if not line:
            raise UserError(
                f"{source}, line {number}: empty, at least after tokenization; remove it"
            )
        yield line


def learn_bpe(
    files: Iterable[Path], out: Path, merges: int, *, workers: int = 1, max_words: int = BPE_WORDS
) -> None:
    """Learns merge operations from the ``max_words`` most frequent words of all files together.

    Each distinct word takes about 2 KiB of memory; the millions of rare words of web text hardly
    change the merges.
    """
    counts = count_words(files, workers)
    words = sorted(counts, key=lambda word: (-counts[word], word))[:max_words]
    listed = [f"{word} {counts[word]}" for word in sorted(words)]
    with writing(out) as codes:
        learner.learn_bpe(listed, codes, merges, is_dict=True)


def count_words(files: Iterable[Path], workers: int = 1) -> Counter[str]:
    """Frequency of each word (separated by white space) in all files together."""
    counts: Counter[str] = Counter()
    for file in files:
        progress = Progress(f"words of {file.name}")
        for lines, some in in_order(_count, read_lines(file), workers, _COUNT_CHUNK):
            counts.update(some)
            progress.add(lines)
        progress.done()
    return counts


def _count(lines: list[str]) -> tuple[int, Counter[str]]:
    return len(lines), Counter(word for line in lines for word in line.split())


@cache
def load_bpe(codes: Path) -> BPE:
    """The encoder of a file of merge operations."""
    with open(codes, encoding="utf-8", newline="\n") as file:
        return BPE(file, separator=_SEPARATOR)


def split_bpe(lines: list[str], model: Path) -> list[str]:
    """Tokenized lines split into subwords by the merge operations in ``model``."""
    bpe = load_bpe(model)
    if len(bpe.cache) > _CACHED:
        bpe.cache.clear()
    return [bpe.process_line(line) for line in lines]


def join_bpe(tokens: str) -> str:
    """The inverse of :func:`split_bpe`: ``"see@@ ing it"`` becomes ``"seeing it"``."""
    return (tokens + " ").replace(_SEPARATOR + " ", "").rstrip()


_SPLIT = {"bpe": split_bpe, "spm": pieces.split}
_JOIN = {"bpe": join_bpe, "spm": pieces.join}


def kind_of(bin_folder: Path) -> str:
    """Kind of subwords, bpe or spm. Raises :class:`UserError` unless there is one subword model."""
    kinds = [kind for kind, name in MODELS.items() if (bin_folder / name).exists()]
    if len(kinds) == 1:
        return kinds[0]
    which = f"{'both' if kinds else 'neither'} of {', '.join(MODELS.values())}"
    raise UserError(f"{bin_folder}: holds {which}, expected the one that split its text")


def join(tokens: str, kind: str) -> str:
    """A line with its subwords joined."""
    return _JOIN[kind](tokens)


def to_text(tokens: str, lang: str, kind: str) -> str:
    """Plain text of a line of model output: subwords joined and, of ``bpe``, detokenized."""
    joined = join(tokens, kind)
    return detokenize(joined, lang) if kind == "bpe" else joined


def from_text(lines: Sequence[str], lang: str, bin_folder: Path) -> list[str]:
    """Sentences split into subwords as in preparation, by the model in ``bin_folder``."""
    kind = kind_of(bin_folder)
    plain = [tokenize(line, lang) for line in lines] if kind == "bpe" else list(lines)
    return _SPLIT[kind](plain, model=bin_folder / MODELS[kind])


def split_file(kind: str, model: Path, source: Path, out: Path, workers: int) -> None:
    """Splits the lines of a file into subwords."""
    split = partial(_SPLIT[kind], model=model)
    lines = chain.from_iterable(in_order(split, read_lines(source), workers))
    write_lines(out, ticking(_nonempty(lines, source), out.name))
