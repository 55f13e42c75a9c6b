"""Reading fairseq's dictionaries, and writing one of a subword model's pieces, for ``--srcdict``.

fairseq's own would be counted in the training text, and hold every character that the model does
not know. Counts are not used after training has begun; here they are 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..errors import UserError
from ..files import decoded, raw_lines, write_lines

UNKNOWN = "<unk>"
# What fairseq puts before the entries of a dictionary, and, for masked words, after them.
FIRST = ("<s>", "<pad>", "</s>", UNKNOWN)
MASK = "<mask>"
MULTIPLE = 8  # of which the size is one, for tensor cores
AGAIN = "remove its folder and prepare the data again"  # hint for a damaged file
_OVERWRITES = " #fairseq:overwrite"


def read_dictionary(path: Path) -> dict[str, int]:
    """Number of each entry of a ``dict.txt``: fairseq's own first, then one for each line. Raises
    UserError where a line is no word with its count, or repeats an entry without overwriting it.
    """
    numbers = {symbol: number for number, symbol in enumerate(FIRST)}
    for row, raw in enumerate(raw_lines(path), start=1):
        where = f"{path}, line {row}"
        line = decoded(raw, where).rstrip()
        entry, _, count = line.removesuffix(_OVERWRITES).rpartition(" ")
        if not (entry and count.isdecimal() and raw.endswith(b"\n")):
            raise UserError(f"{where}: no word with its count; {AGAIN}")
        if entry in numbers and not line.endswith(_OVERWRITES):
            raise UserError(f"{where}: the same word again, '{entry}'; {AGAIN}")
        numbers[entry] = len(FIRST) + row - 1
    return numbers


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
