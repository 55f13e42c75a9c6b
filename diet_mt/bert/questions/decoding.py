"""From the scores of a window's tokens to answers: every span is looked at, none is passed over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]

MAX_ANSWER = 30  # pieces, as in Devlin et al.'s published code
N_BEST = 20


@dataclass(frozen=True)
class Candidate:
    """The characters of a context from ``begin`` to before ``end``; its score is the sum of both
    logits. Nothing, 0 to 0, says that there is no answer.
    """

    begin: int
    end: int
    start_logit: float
    end_logit: float

    @property
    def score(self) -> float:
        return self.start_logit + self.end_logit

    @property
    def order(self) -> tuple[float, int, int]:
        """Best first; of equal ones the one that begins and then ends first."""
        return -self.score, self.begin, self.end


def best_spans(
    start: Floats, end: Floats, max_answer: int, count: int
) -> list[tuple[float, int, int]]:
    """The ``count`` best spans (score, first, last), best first, of those with at most
    ``max_answer`` tokens. Of equal ones the one that begins and then ends first.

    Args:
        start, end: (S,) logits of the tokens of a context, and of nothing else.
    """
    length = len(start)
    width = min(max_answer, length)
    if width < 1 or count < 1:
        return []
    last = np.arange(length)[:, None] + np.arange(width)  # (S, width)
    scores = np.where(
        last < length,
        start[:, None].astype(np.float64) + end[np.minimum(last, length - 1)],
        -np.inf,
    ).ravel()
    valid = int(np.isfinite(scores).sum())
    count = min(count, valid)
    if count < 1:
        return []
    least = np.partition(scores, -count)[-count]
    chosen = np.flatnonzero(scores >= max(least, np.finfo(np.float64).min))
    # Stable, and spans are numbered by begin and then by end.
    chosen = chosen[np.argsort(-scores[chosen], kind="stable")][:count]
    return [(float(scores[i]), int(i // width), int(i // width + i % width)) for i in chosen]


def candidates_of(
    start: Floats,
    end: Floats,
    extents: npt.NDArray[np.integer],
    context: int,
    max_answer: int = MAX_ANSWER,
    count: int = N_BEST,
) -> list[Candidate]:
    """The best answers within one window, at most ``count``, which may share their characters.

    Args:
        start, end: (S,) logits of all tokens of the window, without padding.
        extents: (S, 2) characters that they stand for.
        context: Where the context begins; it ends before the last token.
    """
    inside = slice(context, len(start) - 1)
    places = extents[inside]
    # Pieces that stand for no character: each span that they begin or end is another one, too.
    nothing = places[:, 0] >= places[:, 1]
    starts, ends = (np.where(nothing, -np.inf, logits[inside]) for logits in (start, end))
    return [
        Candidate(int(places[i][0]), int(places[j][1]), float(starts[i]), float(ends[j]))
        for _, i, j in best_spans(starts, ends, max_answer, count)
    ]


def no_answer(start: Floats, end: Floats) -> Candidate:
    """What a window gives to having no answer: the logits of <s>."""
    return Candidate(0, 0, float(start[0]), float(end[0]))


def merge(candidates: Iterable[Candidate], count: int = N_BEST) -> list[Candidate]:
    """The ``count`` best of all windows of a question; the same characters only once, at their
    best.
    """
    kept: dict[tuple[int, int], Candidate] = {}
    for candidate in sorted(candidates, key=lambda each: each.order):
        kept.setdefault((candidate.begin, candidate.end), candidate)
    return list(kept.values())[:count]
