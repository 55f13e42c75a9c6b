"""Moses tokenisation of a corpus, by sacremoses, and its inverse.

The settings are those of fairseq's ``--tokenizer moses``: dashes between letters split off as
``@-@``, and the characters that mean something to Moses escaped (``&apos;``). So a model trained on
this text translates raw sentences through fairseq's own tokenizer without further flags. The only
step that fairseq leaves out is the punctuation normalisation, which is done here first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, partial
from itertools import chain
from pathlib import Path

from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

from ..errors import UserError
from ..files import write_lines
from ..stages.pool import in_order
from ..stages.progress import ticking
from .parallel import read_lines

# sacremoses builds these two sets anew for every word that ends in a full stop: most of its time.
_LOWER = frozenset(MosesTokenizer.IsLower)
_ALPHA = frozenset(MosesTokenizer.IsAlpha)


@cache
def _tools(lang: str) -> tuple[MosesPunctNormalizer, MosesTokenizer, MosesDetokenizer]:
    tokenizer = MosesTokenizer(lang)
    tokenizer.islower = _LOWER.issuperset
    tokenizer.isanyalpha = lambda text: not _ALPHA.isdisjoint(text)
    return MosesPunctNormalizer(lang), tokenizer, MosesDetokenizer(lang)


def tokenize(text: str, lang: str) -> str:
    """A sentence as tokens joined by single spaces, after normalising its punctuation."""
    normalizer, tokenizer, _ = _tools(lang)
    normal = normalizer.normalize(text)
    return str(tokenizer.tokenize(normal, aggressive_dash_splits=True, return_str=True))


def detokenize(tokens: str, lang: str) -> str:
    """The sentence that ``tokenize`` was given, up to normalisation and unusual spacing."""
    return str(_tools(lang)[2].detokenize(tokens.split()))


def _tokenize_all(lines: list[str], lang: str) -> list[str]:
    return [tokenize(line, lang) for line in lines]


def tokenize_file(source: Path, out: Path, lang: str, workers: int) -> int:
    """Tokenises a file, in order; returns the number of lines. Raises UserError as ``read_lines``;
    also for a line of which no token remains.
    """
    _tools(lang)  # built once: forked workers have them from here
    tokens = chain.from_iterable(
        in_order(partial(_tokenize_all, lang=lang), read_lines(source), workers)
    )
    return write_lines(out, ticking(_nonempty(tokens, source), out.name))


def _nonempty(lines: Iterable[str], source: Path) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if not line:
            raise UserError(f"{source}, line {number}: nothing left after tokenisation; remove it")
        yield line
