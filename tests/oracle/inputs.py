"""What each encoding adds to the token embeddings.

Sources: sinusoids, Vaswani et al. 2017 (arXiv:1706.03762), section 3.5; learned vectors, Devlin et
al. 2018 (arXiv:1810.04805), section 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .encodings import Tables


def no_input(tables: Tables, position: int, c: int, width: int) -> float:
    """Nothing is added to the embeddings."""
    assert not tables
    return 0.0


def sinusoid(tables: Tables, position: int, c: int, width: int) -> float:
    """Sines in the first half of the columns, cosines in the second.

    Wavelengths from 2 pi to 10000 * 2 pi, both included, as in Tensor2Tensor.
    """
    assert not tables
    half = width // 2
    wave = c if c < half else c - half
    angle = position / 10000.0 ** (wave / (half - 1))
    return math.sin(angle) if c < half else math.cos(angle)


def learned_row(tables: Tables, position: int, c: int, width: int) -> float:
    """P[position, c]."""
    return float(tables["weight"][position][c])


def beside(tables: Tables, position: int, c: int, width: int) -> float:
    """[x ; P]: P[position] in the last columns, where the words have none."""
    row = tables["weight"][position]
    first = width - len(row)
    return float(row[c - first]) if c >= first else 0.0


# Added to column c of the token embedding at a position, in a stack of ``width``, by encoding.
INPUTS: dict[str, Callable[[Tables, int, int, int], float]] = {
    "none": no_input,
    "sinusoidal": sinusoid,
    "learned": learned_row,
    "shape": sinusoid,  # where nothing is drawn, as in the next
    "cape": sinusoid,
    "concat": beside,
    "shaw": no_input,
    "t5": no_input,
    "tupe-abs": no_input,
    "tupe-rel": no_input,
    "rotary": no_input,
    "pope": no_input,
    "alibi": no_input,
    "kerple": no_input,
    "sandwich": no_input,
    "fire": no_input,
    "deberta": no_input,
    "diet-abs": no_input,
    "diet-rel": no_input,
    "linformer": learned_row,
    "diet-abs-lin": no_input,
}
