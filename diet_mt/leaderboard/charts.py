"""Points and lines as SVG that takes the width it is given; the style sheet brings colours.

Heights are pixels, places along the width percentages. Numbers of the vertical axis stand on their
lines, inside the picture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import product
from statistics import fmean

from .scales import Scale

HEIGHT = 260
_TOP, _BOTTOM = 14, 24  # for letters above the highest line and below the lowest
# Pixels of width, of a phone and of a file, at which names must not meet.
_WIDTHS = {330: "always", 880: "roomy"}
_LETTER, _LINE = 7.3, 13  # size of letters
_SIDES = ("after", "before")  # of a point, on which its name stands
_APART = 14  # names at the ends of lines
_LEFT = 22  # of the numbers of the vertical axis
# Of a name that meets another, in pixels.
_SHIFTS = (0, 5, -5, -12, 12, -20, 20, -28, 28, -36, 36, 44, 52)
_LED = 8  # a name farther from its point has a line to it
_NEAR = 5  # pixels from a name to other points, at least
_STRETCH = 50  # pixels from the end of a curve to its name, at most
_LETTERS = 15  # of a name at the end of a line; tables have all


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
            (*place, _short(e.name), e.important, (x.share(e.low), x.share(e.high)))
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
            f"{_beside(_short(each.name), place, top, *names[number])}</g>"
        )
    return "\n".join(out)


def curves(
    found: Sequence[Curve], x: Scale, y: Scale, ticks: Sequence[tuple[float, str]] = ()
) -> str:
    """A line for each curve; ``ticks``: places along the width, with names.

    Names stand in a column behind the last end, near the ends of their curves, the important ones
    first where not all fit; others are read by pointing.
    """
    last = max(each.points[-1][0] for each in found)
    out = list(_axes(x, y, ticks or [(t, x.text(t)) for t in x.ticks() if t <= last]))
    ends = [(x.share(e.points[-1][0]), _y(y, e.points[-1][1])) for e in found]
    column = f"{100 * max(left for left, _ in ends):.2f}%"
    names = shortened([_short(each.name) for each in found], _LETTERS)
    by_importance = sorted(range(len(found)), key=lambda number: not found[number].important)
    heights = _heights({n: ends[n][1] for n in by_importance if found[n].name})
    for number in reversed(by_importance):
        each, (left, top) = found[number], ends[number]
        path = " ".join(f"{1000 * x.share(a):.1f},{_y(y, b)}" for a, b in each.points)
        classes = f"curve {each.family}{' strong' if each.important else ''}"
        name = names[_short(each.name)]
        at, kind = heights.get(number, top), "after always" if number in heights else "after"
        lead = (
            f'<line class="lead" x1="{100 * left:.2f}%" x2="{column}" y1="{top}" y2="{top}"/>'
            f'<svg x="{column}" overflow="visible">'
            f'<line class="lead" x2="7" y1="{top}" y2="{at}"/></svg>'
            f"{_label(name, column, at, kind)}"
        )
        out.append(
            f'<g class="{classes}" data-system="{escape(each.name)}" tabindex="-1">'
            f"<title>{escape(each.said or each.name)}</title>"
            f'<svg width="100%" height="{HEIGHT}" viewBox="0 0 1000 {HEIGHT}" '
            f'preserveAspectRatio="none"><polyline class="hit" points="{path}"/>'
            f'<polyline points="{path}"/></svg>{lead if name else ""}</g>'
        )
    return "\n".join(out)


def _heights(ends: Mapping[int, float]) -> dict[int, float]:
    """Of the names that are shown, by the heights of their curves' ends, the first ones first."""
    named: dict[int, float] = {}
    for number, end in ends.items():
        more = [*named, number]
        spread = _spread([ends[each] for each in more])
        if all(abs(at - ends[each]) <= _STRETCH for each, at in zip(more, spread, strict=True)):
            named[number] = end
    return dict(zip(named, _spread(list(named.values())), strict=True))


def _spread(wanted: Sequence[float]) -> list[float]:
    """The heights nearest to those ``wanted``, by least squares, in their order and a line of text
    apart: an isotonic regression, by pooling adjacent violators (Barlow et al. 1972).
    """
    order = sorted(range(len(wanted)), key=lambda number: wanted[number])
    pools: list[list[float]] = []  # of what is left of a height without the lines above it
    for place, number in enumerate(order):
        pools.append([wanted[number] - place * _APART])
        while len(pools) > 1 and fmean(pools[-2]) >= fmean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    least, most = _TOP / 2, HEIGHT - _BOTTOM - _APART / 2 - (len(wanted) - 1) * _APART
    free = [max(least, min(fmean(pool), most)) for pool in pools for _ in pool]
    found = list(wanted)
    for place, number in enumerate(order):
        found[number] = round(free[place] + place * _APART, 1)
    return found


def _short(name: str) -> str:
    """Without the architecture behind it."""
    return name.partition(" (")[0]


def shortened(names: Iterable[str], letters: int) -> dict[str, str]:
    """Names of at most so many letters: of a longer one the beginning is left out, since variants
    of a system (``diet_rel.encoder,cross``) begin alike; its middle, where variants of two systems
    end alike, too.
    """
    whole = list(dict.fromkeys(names))
    found = {name: name for name in whole if len(name) <= letters}
    for kept in (0, letters // 2):  # of the beginning
        cut = {n: n[:kept] + "…" + n[kept + 1 - letters :] for n in whole if n not in found}
        times = Counter(cut.values())
        found |= {name: short for name, short in cut.items() if times[short] == 1 or kept}
    return found


def _label(name: str, x: str, y: float, kind: str) -> str:
    text = f'<text class="label {kind}" y="4">{escape(name)}</text>'
    return f'<svg x="{x}" y="{y}" overflow="visible">{text}</svg>'


def _beside(name: str, x: str, y: float, kind: str, below: float) -> str:
    """The name of a point, with a line to it where it stands farther away."""
    if abs(below) < _LED:
        return _label(name, x, y + below, kind)
    sign = 1 if "before" in kind else -1
    lead = f'<line class="lead" x1="{9 * sign}" y1="{-below}" x2="{sign}"/>'
    text = f'<text y="4">{escape(name)}</text>'
    label = f'<g class="label {kind}">{lead}{text}</g>'
    return f'<svg x="{x}" y="{round(y + below, 1)}" overflow="visible">{label}</svg>'


def _named(wanted: Sequence[Wanted]) -> list[tuple[str, float]]:
    """Of each name its classes, and how far it is below its point.

    Classes: its side of the point, and ``always`` or ``roomy`` where it meets no other name and is
    near no other point at that width, the important ones first; others are read by pointing.
    """
    # A page shows at any width what is pointed at: the side with the most room on a phone.
    narrow = min(_WIDTHS)
    sides = [
        min(_SIDES, key=lambda side: _outside(_box(each, side, 0, narrow), narrow))
        for each in wanted
    ]
    order = sorted(range(len(wanted)), key=lambda number: not wanted[number][3])
    named: dict[int, tuple[str, float]] = {}
    for width, kind in _WIDTHS.items():
        dots = [(w[4][0] * width - 5, w[1] - 5, w[4][1] * width + 5, w[1] + 5) for w in wanted]
        taken = [
            _box(wanted[n], said.split()[0], below, width) for n, (said, below) in named.items()
        ]
        for number in order:
            if number in named:
                continue
            own = [side for side in _SIDES if width == narrow or side == sides[number]]
            others = taken + dots[:number] + dots[number + 1 :]
            for below, side in product(_SHIFTS, sorted(own, key=lambda s: s != sides[number])):
                box = _box(wanted[number], side, below, width)
                # Without a line to its point a name is nearer to it than to any other.
                far = 0 if abs(below) >= _LED else _NEAR
                meets = _meet(box, dots[number]) or any(_meet(box, each, far) for each in others)
                if not meets and not _outside(box, width):
                    named[number] = f"{side} {kind}", below
                    taken.append(box)
                    break
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


def _outside(box: Box, width: int) -> float:
    """Pixels of a box beyond the picture, where the numbers of the vertical axis count as such."""
    left, top, right, bottom = box
    outside = (_LEFT - left, right - width, -top, bottom - (HEIGHT - _BOTTOM))
    return sum(max(0, each) for each in outside)


def _meet(one: Box, other: Box, far: float = 0) -> bool:
    """Whether two boxes are less than ``far`` apart."""
    (left, top, right, bottom), (x0, y0, x1, y1) = one, other
    return left < x1 + far and x0 < right + far and top < y1 + far and y0 < bottom + far
