"""Slow reference: the equations, written as loops over single numbers.

Nothing of diet_mt is imported, and no tensor library computes: every sum is a Python ``for``. What
goes in are raw weights as arrays. Letters: b sentence, h head, i query, j key, c column.
``tests/positions/cases.py`` has the equations of each encoding.
"""

from .attention import Array, Projections, attend, attention
from .encodings import Encoding, Setting, segment_logit, segment_row, sinusoid

__all__ = [
    "Array",
    "Encoding",
    "Projections",
    "Setting",
    "attend",
    "attention",
    "segment_logit",
    "segment_row",
    "sinusoid",
]
