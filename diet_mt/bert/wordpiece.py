"""WordPiece, learnt by the library ``tokenizers`` from text that is split into words as BERT does.

Wu et al. (2016), "Google's Neural Machine Translation System", arXiv:1609.08144, section 4.1;
normalization and words as in Devlin et al. (2018), arXiv:1810.04805: control characters are
dropped, CJK characters and punctuation stand alone, and unless the model is cased, letters are made
small and lose their accents. A piece that continues a word begins with ``##``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from ..corpora.dictionary import FIRST, UNKNOWN
from ..corpora.parallel import read_lines
from ..errors import UserError
from ..files import writing
from ..stages.progress import ticking

CONTINUES = "##"
# Different characters that can be pieces, as in the library's own default.
_ALPHABET = 1000


def learn(files: Iterable[Path], out: Path, size: int, *, cased: bool = False) -> None:
    """Learns WordPiece from all lines of the files together and writes the tokenizer to ``out``.
    Raises UserError where the text is too small for ``size``, or as ``read_lines``.

    Args:
        size: Entries of the whole vocabulary, fairseq's five marks among them.
    """
    files = list(files)
    own = len(FIRST)  # fairseq has four more: <mask> and FIRST without <unk>, which is here, too
    tokenizer = _untrained({UNKNOWN: 0}, cased)
    alphabet = _alphabet(tokenizer, ticking(_lines(files), "characters"))
    trainer = trainers.WordPieceTrainer(
        vocab_size=size - own,
        # What is given here comes first, in this order. The library itself numbers characters in
        # an order that differs from run to run, and breaks ties between pairs by those numbers.
        special_tokens=[UNKNOWN, *alphabet],
        limit_alphabet=0,
        show_progress=False,
        continuing_subword_prefix=CONTINUES,
    )
    tokenizer.train_from_iterator(ticking(_lines(files), "lines"), trainer)
    vocabulary = tokenizer.get_vocab()
    if len(vocabulary) < size - own:
        raise UserError(
            f"WordPiece: the text has {len(vocabulary) + own} different pieces and marks, not "
            f"{size}; give a smaller size, or more text"
        )
    if len(vocabulary) > size - own:
        raise UserError(
            f"WordPiece: {size} are too few for the {len(alphabet)} characters of the text, each "
            "with and without the sign of continuation where it stands so; give a larger size"
        )
    # A new one: to the trained one, the alphabet are special tokens, to be found inside of words.
    with writing(out) as file:
        file.write(_untrained(vocabulary, cased).to_str(pretty=True) + "\n")


def _untrained(vocabulary: dict[str, int], cased: bool) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=not cased)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=CONTINUES, cleanup=False)
    return tokenizer


def _lines(files: Iterable[Path]) -> Iterator[str]:
    return chain.from_iterable(map(read_lines, files))


def _alphabet(tokenizer: tokenizers.Tokenizer, lines: Iterable[str]) -> list[str]:
    """The most frequent characters; behind them, marked, those of them that continue a word."""
    chunks: Counter[str] = Counter()
    for line in lines:
        chunks.update(tokenizer.normalizer.normalize_str(line).split())
    characters: Counter[str] = Counter()
    continuing: set[str] = set()
    for chunk, count in chunks.items():
        for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(chunk):
            for character in word:
                characters[character] += count
            continuing.update(word[1:])
    frequent = sorted(characters, key=lambda character: (-characters[character], character))
    kept = sorted(frequent[:_ALPHABET])
    return kept + [CONTINUES + character for character in kept if character in continuing]
