"""Segments as loops: Chen et al. 2021 (arXiv:2104.08698), equation 2, and Devlin et al. 2018
(arXiv:1810.04805), section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .encodings import Setting, Tables


def per_head(
    setting: Setting, segments: Sequence[Sequence[int]]
) -> Callable[[int, int, int, int], float]:
    """(b, h, i, j) -> E_S[S(i), S(j)]; ``segments`` by sentence and position."""

    def logit(b: int, h: int, i: int, j: int) -> float:
        return float(setting.table("weight", h)[segments[b][i]][segments[b][j]])

    return logit


def at_the_input(tables: Tables, segment: int, c: int) -> float:
    """What is added to column c of the embedding of a token."""
    return float(tables["weight"][segment][c])
