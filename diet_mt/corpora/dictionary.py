"""A fixed dictionary for ``fairseq-preprocess --srcdict``: the pieces of a subword model.

fairseq's own would count in the training text, and take in every character that the model does not
know. Counts are not used after training has begun; here they are 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..files import write_lines

# What fairseq puts before the entries of a dictionary, and, for masked words, after them.
FIRST = ("<s>", "<pad>", "</s>", "<unk>")
MASK = "<mask>"
MULTIPLE = 8  # sizes that hardware likes


def write_dictionary(symbols: Iterable[str], out: Path, later: int = 0) -> None:
    """Writes ``symbols``, filled up so that the whole size can be divided by 8.

    Args:
        symbols: In their order; none of fairseq's own.
        later: Entries that fairseq will add behind them.
    """
    entries = list(symbols)
    missing = -(len(FIRST) + len(entries) + later) % MULTIPLE
    lines = [f"{symbol} 1" for symbol in entries]
    write_lines(out, lines + [f"madeupword{number:04d} 0" for number in range(missing)])
