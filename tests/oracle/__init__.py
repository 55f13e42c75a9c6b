"""Slow reference: the equations, written as loops over single numbers.

Nothing of diet_mt is imported, and no tensor library computes: every sum is a Python ``for``. What
goes in are raw weights as arrays. Letters: b sentence, h head, i query, j key, c column.
"""

from .attention import Array, Projections, attend, attention
from .encodings import ENCODINGS, Encoding, Setting
from .inputs import INPUTS, sinusoid
from .segments import at_the_input, per_head

__all__ = [
    "ENCODINGS",
    "INPUTS",
    "Array",
    "Encoding",
    "Projections",
    "Setting",
    "at_the_input",
    "attend",
    "attention",
    "per_head",
    "sinusoid",
]
