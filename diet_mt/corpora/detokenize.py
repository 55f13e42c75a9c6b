"""Turns what a model wrote back into text, for SacreBLEU and for people.

Joins the subwords and, where these are byte-pair codes of Moses tokens, undoes the tokenisation,
line by line. An empty line, the translation of a model that said nothing, stays an empty line: the
lines keep their numbers.
"""

from __future__ import annotations

from .moses import detokenize
from .subwords import join


def to_text(tokens: str, lang: str, subwords: str) -> str:
    """The sentence for one line of a model's output.

    Args:
        subwords: "bpe" (on Moses tokens) or "spm" (on plain text), as ``subwords.kind_of`` says.
    """
    joined = join(tokens, subwords)
    return detokenize(joined, lang) if subwords == "bpe" else joined
