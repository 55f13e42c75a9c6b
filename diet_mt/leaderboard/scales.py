"""Axes of pictures: places along them are percentages, so a picture takes the width it is given."""

from __future__ import annotations

import math
from collections.abc import Sequence

_FINEST = -3  # power of ten of the smallest step
_MOST_TICKS = 6


class Scale:
    """A range with round numbers in it. ``margin``: empty share of the width below and above."""

    def __init__(
        self, values: Sequence[float], *, margin: tuple[float, float] = (0.04, 0.04)
    ) -> None:
        low, high = float(min(values)), float(max(values))
        if high - low <= 1e-12 * abs(high):  # too near for a number between them
            half = max(abs(high) * 0.005, 0.1)
            low, high = low - half, high + half
        width = high - low
        below, above = (share * width / (1 - sum(margin)) for share in margin)
        self.low, self.high = low - below, high + above
        # A wide margin would leave the values with a single number.
        inside = min(self.high - self.low, 1.1 * width)
        power = max(_FINEST, math.floor(math.log10(inside / _MOST_TICKS)))
        steps = [digit * 10.0**power for digit in (1, 2, 5, 10)]
        self.step = next(step for step in steps if inside / step <= _MOST_TICKS * (1 + 1e-9))

    def ticks(self) -> list[float]:
        first, last = math.ceil(self.low / self.step), math.floor(self.high / self.step)
        return [number * self.step for number in range(first, last + 1)]

    def share(self, value: float) -> float:
        """Where ``value`` is, from 0 to 1."""
        return (value - self.low) / (self.high - self.low)

    def place(self, value: float) -> str:
        """``value`` as a percentage of the width."""
        return f"{100 * self.share(value):.2f}%"

    def text(self, tick: float) -> str:
        if self.step >= 1e6 or (tick and self.step * 5 >= 1e5):
            return f"{tick / 1e6:g} M"
        digits = max(0, -math.floor(math.log10(self.step)))
        return f"{tick:,.{digits}f}".replace("-", "−")
