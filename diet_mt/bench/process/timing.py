"""Comparing how long things take on a machine that is not always equally fast.

Cases take turns, so that whatever slows the machine down for a while slows all of them, and ratios
are taken within a round.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from statistics import quantiles


def clocked(
    case: Callable[[], object],
    settle: Callable[[], object] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> Callable[[], float]:
    """``case`` as a turn: a function that calls it and returns the seconds it took.

    ``settle`` waits for work that was only handed over, as to a GPU.
    """

    def turn() -> float:
        settle()
        start = clock()
        case()
        settle()
        return clock() - start

    return turn


def interleaved(
    turns: Mapping[str, Callable[[], float]],
    *,
    rounds: int,
    warmup: int,
    progress: Callable[[int], None] = lambda number: None,
) -> dict[str, list[float]]:
    """Seconds that each turn took in each round, the warming-up rounds left out.

    One at a time; another one begins each round. ``progress`` hears of each round before it begins.
    """
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    names = list(turns)
    for number in range(-warmup, rounds):
        progress(number)
        first = number % len(names)
        for name in names[first:] + names[:first]:
            taken = turns[name]()
            if number >= 0:
                seconds[name].append(taken)
    return seconds


def ratios(ours: list[float], theirs: list[float]) -> list[float]:
    """Time of ours over theirs, round by round: below 1 is faster."""
    return [one / other for one, other in zip(ours, theirs, strict=True)]


def numbers(prefix: str, values: list[float]) -> dict[str, float]:
    """Median and quartiles of at least one value, as entries of a record."""
    found = quantiles(values, n=4, method="inclusive") if len(values) > 1 else 3 * values
    low, median, high = (round(value, 4) for value in found)
    return {f"{prefix}median": median, f"{prefix}low": low, f"{prefix}high": high}


def rounds_on_stderr(label: str, rounds: int) -> Callable[[int], None]:
    """A ``progress`` for :func:`interleaved` that says which round begins."""

    def say(number: int) -> None:
        state = f"round {number + 1} of {rounds}" if number >= 0 else "warming up"
        print(f"{label}: {state}", file=sys.stderr)

    return say
