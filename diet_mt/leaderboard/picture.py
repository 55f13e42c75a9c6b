"""BLEU as a picture: SVG to stand in a page, which brings the style sheet.

One row for each system, its name above its scale. Places along the scale are percentages, so the
picture takes the width it is given while letters and marks keep their size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from ..evaluation.groups import BASELINE
from .standings import Section, Standing

# In CSS pixels. The marks of a row stand MARK below its top, its name NAME below.
ROW, NAME, MARK = 50, 15, 29
AXIS = 30  # height of the numbers under the rows
LONGEST = 34  # letters of a name; the table has all of it
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
_MOST_TICKS = 6


class Scale:
    """A range of BLEU with round numbers in it."""

    def __init__(self, values: list[float]) -> None:
        low, high = min(values), max(values)
        margin = max((high - low) * 0.04, 0.1)
        self.low, self.high = low - margin, high + margin
        width = self.high - self.low
        self.step = next((step for step in _STEPS if width / step <= _MOST_TICKS), _STEPS[-1])

    def ticks(self) -> list[float]:
        first, last = math.ceil(self.low / self.step), math.floor(self.high / self.step)
        return [number * self.step for number in range(first, last + 1)]

    def place(self, value: float) -> str:
        """``value`` as a percentage of the width."""
        return f"{100 * (value - self.low) / (self.high - self.low):.2f}%"


def picture(section: Section, identity: str) -> str:
    """``identity``: of this picture in its page, for what its title is found by."""
    standings = section.standings
    scale = Scale([value for standing in standings for value in _values(standing)])
    height = ROW * len(standings)
    head = (
        f'<svg class="picture" width="100%" height="{height + AXIS}" role="img" '
        f'aria-labelledby="{identity}-title {identity}-text">'
    )
    title = f'<title id="{identity}-title">BLEU, {escape(section.group.conditions.heading)}</title>'
    text = f'<desc id="{identity}-text">{escape("; ".join(map(_in_words, standings)))}</desc>'
    out = [head, title, text, *_axis(scale, height)]
    baseline = section.group.baseline
    if baseline is not None and scale.low <= baseline.bleu <= scale.high:
        place = scale.place(baseline.bleu)
        out.append(f'<line class="baseline" x1="{place}" x2="{place}" y1="0" y2="{height}"/>')
    for number, standing in enumerate(standings):
        out += _row(standing, scale, ROW * number)
    return "\n".join([*out, "</svg>"])


def _values(standing: Standing) -> Iterator[float]:
    """All that has a mark."""
    if standing.published:
        yield standing.published.bleu
    if standing.line:
        yield from (result.bleu for result in standing.line.results)
        half = standing.half_width or 0.0
        yield from (standing.line.bleu - half, standing.line.bleu + half)


def _in_words(standing: Standing) -> str:
    parts = []
    if standing.line:
        parts.append(f"{standing.line.bleu:.2f} ± {standing.half_width:.2f}")
    if standing.published:
        parts.append(f"paper {standing.published.bleu:.2f}")
    return f"{standing.name}: {', '.join(parts)}"


def _axis(scale: Scale, height: int) -> Iterator[str]:
    digits = 0 if scale.step >= 1 else 1
    for tick in scale.ticks():
        place = scale.place(tick)
        yield f'<line class="grid" x1="{place}" x2="{place}" y1="0" y2="{height}"/>'
        yield f'<text class="tick" x="{place}" y="{height + 18}">{tick:.{digits}f}</text>'


def _row(standing: Standing, scale: Scale, top: int) -> Iterator[str]:
    name = standing.name if len(standing.name) <= LONGEST else standing.name[: LONGEST - 1] + "…"
    line, y = standing.line, top + MARK
    own = " own" if line and line.system == BASELINE else ""
    yield f'<text class="name{own}" x="0" y="{top + NAME}">{escape(name)}</text>'
    if line:
        yield f'<text class="value{own}" x="100%" y="{top + NAME}">{line.bleu:.2f}</text>'
        middle = scale.place(line.bleu)
        half = standing.half_width or 0.0
        ends = [scale.place(line.bleu + each) for each in (-half, half)]
        yield f'<line class="bar" x1="{ends[0]}" x2="{ends[1]}" y1="{y}" y2="{y}"/>'
        for end in ends:
            yield f'<line class="bar" x1="{end}" x2="{end}" y1="{y - 4}" y2="{y + 4}"/>'
        if len(line.results) > 1:
            for result in line.results:
                yield f'<circle class="seed" cx="{scale.place(result.bleu)}" cy="{y}" r="3"/>'
        yield f'<circle class="mean" cx="{middle}" cy="{y}" r="5"/>'
    if standing.published:
        place = scale.place(standing.published.bleu)
        yield f'<svg class="published" x="{place}" y="{y}"><path d="M0-6 6 0 0 6-6 0Z"/></svg>'
