"""How much of each language: less unequal than the text itself.

Lample and Conneau (2019), arXiv:1901.07291, section 3.1: with a share p of all sentences, a
language is drawn with a probability proportional to p ** alpha, alpha = 0.5, for the vocabulary as
for training. Here nothing is drawn: what is wanted n times of c is taken evenly, again and again
where n is more than c, so that the same text always gives the same corpus.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import UserError


def shares(counts: Mapping[str, int], alpha: float) -> dict[str, float]:
    """The share of each language, 0 to 1, from how many sentences there are of each. Raises
    UserError where ``alpha`` is not within [0, 1].

    Args:
        alpha: 1: as they are; 0: all the same.
    """
    if not 0 <= alpha <= 1:
        raise UserError(f"alpha {alpha:g}: must be from 0 (all languages the same) to 1 (as is)")
    total = sum(counts.values())
    weights = {lang: (count / total) ** alpha for lang, count in counts.items()}
    return {lang: weight / sum(weights.values()) for lang, weight in weights.items()}


def times(counts: Mapping[str, int], alpha: float) -> dict[str, float]:
    """How often each language is to be repeated for these shares: the least so once."""
    wanted = shares(counts, alpha)
    factors = {lang: wanted[lang] / count for lang, count in counts.items()}
    return {lang: factor / min(factors.values()) for lang, factor in factors.items()}


def copies(number: int, count: int, wanted: int) -> int:
    """How often item ``number``, from 0, of ``count`` is taken so that ``wanted`` come out."""
    return (number + 1) * wanted // count - number * wanted // count
