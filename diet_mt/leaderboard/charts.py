"""Points and lines as SVG that takes the width it is given; the style sheet brings colours.

Heights are pixels, places along the width percentages. Numbers of the vertical axis stand on their
lines, inside the picture.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import product

from .scales import Scale

HEIGHT = 260
_TOP, _BOTTOM = 14, 24  # for letters above the highest line and below the lowest
# Pixels of width, of a phone and of a file, at which names must not meet.
_WIDTHS = {330: "always", 880: "roomy"}
_LETTER, _LINE = 7.3, 13  # size of letters
_APART = 14  # names at the ends of lines
_LEFT = 22  # of the numbers of the vertical axis
_SHIFTS = (0, 5, -5, -12, 12)  # of a name that meets another, in pixels
_TURN = 0.7  # from here on a name stands before its point
_LETTERS = 16  # of a name at the end of a line; tables have all


@dataclass(frozen=True)
class Point:
    """One mark, with all that is said of it; ``important`` ones are named first.

    ``around``: between what ``x`` may as well be.
    """

    name: str
    family: str
    x: float
    y: float
    said: str
    important: bool = False
    around: tuple[float, float] | None = None

    @property
    def low(self) -> float:
        return self.around[0] if self.around else self.x

    @property
    def high(self) -> float:
        return self.around[1] if self.around else self.x


@dataclass(frozen=True)
class Curve:
    """Points from left to right. Without a name it has none at its end."""

    name: str
    family: str
    points: Sequence[tuple[float, float]]
    said: str = ""
    important: bool = False


def _y(scale: Scale, value: float) -> float:
    return round(_TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - scale.share(value)), 1)


def _axes(x: Scale, y: Scale, names: Sequence[tuple[float, str]] = ()) -> Iterator[str]:
    """``names``: of ticks along the width; none: its round numbers."""
    for tick in y.ticks():
        at = _y(y, tick)
        yield f'<line class="grid" x1="0" x2="100%" y1="{at}" y2="{at}"/>'
        yield f'<text class="tick left" x="0" y="{at - 3}">{y.text(tick)}</text>'
    for tick, text in names or [(tick, x.text(tick)) for tick in x.ticks()]:
        yield f'<text class="tick" x="{x.place(tick)}" y="{HEIGHT - 6}">{escape(text)}</text>'


def points(found: Sequence[Point], x: Scale, y: Scale) -> str:
    """A scatter plot."""
    out = list(_axes(x, y))
    places = [(x.share(each.x), _y(y, each.y)) for each in found]
    names = _named(
        [
            (*place, e.name, e.important, (x.share(e.low), x.share(e.high)))
            for place, e in zip(places, found, strict=True)
        ]
    )
    for number in sorted(range(len(found)), key=lambda number: found[number].important):
        each, (left, top) = found[number], places[number]
        place = f"{100 * left:.2f}%"
        ends = f'x1="{x.place(each.low)}" x2="{x.place(each.high)}" y1="{top}" y2="{top}"'
        bar = f'<line class="bar" {ends}/>' if each.around else ""
        out.append(
            f'<g class="point {each.family}" data-system="{escape(each.name)}" tabindex="-1">'
            f"<title>{escape(each.said)}</title>"
            f'<circle class="hit" cx="{place}" cy="{top}" r="10"/>{bar}'
            f'<circle class="mean" cx="{place}" cy="{top}" r="4.5"/>'
            f"{_label(each.name, place, top + names[number][1], names[number][0])}</g>"
        )
    return "\n".join(out)


def curves(
    found: Sequence[Curve], x: Scale, y: Scale, ticks: Sequence[tuple[float, str]] = ()
) -> str:
    """A line for each curve; ``ticks``: places along the width, with names.

    Names stand in a column behind the last end, the important ones first where not all fit; others
    are read by pointing.
    """
    last = max(each.points[-1][0] for each in found)
    out = list(_axes(x, y, ticks or [(t, x.text(t)) for t in x.ticks() if t <= last]))
    ends = [(x.share(e.points[-1][0]), _y(y, e.points[-1][1])) for e in found]
    column = f"{100 * max(left for left, _ in ends):.2f}%"
    by_importance = sorted(range(len(found)), key=lambda number: not found[number].important)
    with_name = [number for number in by_importance if found[number].name]
    named = with_name[: int((HEIGHT - _TOP - _BOTTOM) / _APART)]
    heights = dict(zip(named, _spread([ends[number][1] for number in named]), strict=True))
    for number in reversed(by_importance):
        each, (left, top) = found[number], ends[number]
        path = " ".join(f"{1000 * x.share(a):.1f},{_y(y, b)}" for a, b in each.points)
        classes = f"curve {each.family}{' strong' if each.important else ''}"
        name = each.name.partition(" (")[0]  # without the architecture behind it
        at, kind = heights.get(number, top), "after always" if number in heights else "after"
        lead = (
            f'<line class="lead" x1="{100 * left:.2f}%" x2="{column}" y1="{top}" y2="{top}"/>'
            f'<svg x="{column}" overflow="visible">'
            f'<line class="lead" x2="7" y1="{top}" y2="{at}"/></svg>'
            f"{_label(ending(name, _LETTERS), column, at, kind)}"
        )
        out.append(
            f'<g class="{classes}" data-system="{escape(each.name)}" tabindex="-1">'
            f"<title>{escape(each.said or each.name)}</title>"
            f'<svg width="100%" height="{HEIGHT}" viewBox="0 0 1000 {HEIGHT}" '
            f'preserveAspectRatio="none"><polyline class="hit" points="{path}"/>'
            f'<polyline points="{path}"/></svg>{lead if name else ""}</g>'
        )
    return "\n".join(out)


def _spread(wanted: Sequence[float]) -> list[float]:
    """Heights near those ``wanted``, in their order and a line of text apart."""
    order = sorted(range(len(wanted)), key=lambda number: wanted[number])
    found = list(wanted)
    lowest = -math.inf
    for number in order:
        lowest = found[number] = max(wanted[number], lowest)
        lowest += _APART
    highest = float(HEIGHT - _BOTTOM - _APART / 2)
    for number in reversed(order):
        highest = found[number] = min(found[number], highest)
        highest -= _APART
    return [round(each, 1) for each in found]


def ending(name: str, letters: int) -> str:
    """``name``, its beginning left out where it has more ``letters``: variants of a system
    (``diet_rel.encoder,cross``) begin alike.
    """
    return name if len(name) <= letters else "…" + name[1 - letters :]


def _label(name: str, x: str, y: float, kind: str) -> str:
    text = f'<text class="label {kind}" y="4">{escape(name)}</text>'
    return f'<svg x="{x}" y="{y}" overflow="visible">{text}</svg>'


def _named(wanted: Sequence[Wanted]) -> list[tuple[str, float]]:
    """Of each name its classes, and how far it is below its point.

    Classes: its side of the point, and ``always`` or ``roomy`` where it meets no other name or
    point at that width, the important ones first; others are read by pointing.
    """
    sides = ["before" if left > _TURN else "after" for left, *_ in wanted]
    named: dict[int, tuple[str, float]] = {}
    for width, kind in _WIDTHS.items():
        dots = [(w[4][0] * width - 5, w[1] - 5, w[4][1] * width + 5, w[1] + 5) for w in wanted]
        taken = [
            _box(wanted[n], said.split()[0], below, width) for n, (said, below) in named.items()
        ]
        for number in sorted(range(len(wanted)), key=lambda n: not wanted[n][3]):
            others = taken + dots
            own = sorted(("after", "before"), key=lambda side: side != sides[number])
            for below, side in product(_SHIFTS, own):
                box = _box(wanted[number], side, below, width)
                inside = box[0] >= _LEFT and box[2] <= width and box[1] >= 0
                if number not in named and inside and not any(_meet(box, each) for each in others):
                    named[number] = f"{side} {kind}", below
                    taken.append(box)
    return [named.get(number, (side, 0)) for number, side in enumerate(sides)]


# Share of the width, height, name, whether important, shares from where to where it is around.
Wanted = tuple[float, float, str, bool, tuple[float, float]]
Box = tuple[float, float, float, float]


def _box(wanted: Wanted, side: str, below: float, width: int) -> Box:
    left, top, text, *_ = wanted
    top += below
    length = _LETTER * len(text)
    start = left * width + (-9 - length if side == "before" else 9)
    return start, top - _LINE / 2, start + length, top + _LINE / 2


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
