"""Pictures of a leaderboard as one SVG file that stands by itself."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from ..errors import UserError
from ..evaluation.groups import BASELINE
from .beside import Beside
from .charts import HEIGHT, shortened
from .families import FAMILIES, family_of_standing
from .picture import ROW, axis, grid, marks, scale_of
from .standings import Section
from .views import VIEWS

# In pixels: names and BLEU beside the marks, heights of a title, of an axis and of a line of text.
_WIDTH, _NAMES, _VALUES, _TITLE, _AXIS, _LINE, _EDGE = 880, 190, 60, 30, 22, 20, 16
LONGEST = 26  # letters of a name; tables have all
_STYLES = ("marks.css", "file.css")

Drawn = tuple[str, int]  # SVG, and its height

INTERVALS = "intervals"


def svg(sections: Sequence[Section], beside: Beside, picture: str = INTERVALS) -> str:
    """``picture``: intervals, or one of VIEWS, of every section that has it.

    Raises UserError where none has.
    """
    out: list[str] = []
    y = 0
    families: dict[str, None] = {}
    for section in sections:
        drawn = intervals(section) if picture == INTERVALS else _view(section, beside, picture)
        if drawn is not None:
            content, height = drawn
            title = escape(section.group.conditions.heading)
            out.append(f'<text class="title" x="0" y="{y + 16}">{title}</text>')
            place = f'y="{y + _TITLE}" width="{_WIDTH}" height="{height}"'
            out.append(f'<svg {place} overflow="visible">{content}</svg>')
            y += _TITLE + height + 2 * _LINE
            families.update(dict.fromkeys(map(family_of_standing, section.standings)))
    if not out:
        raise UserError(f"--picture {picture}: there is nothing to draw it from in these results")
    x = 0
    for family in (family for family in FAMILIES if family in families):
        out.append(
            f'<g class="{family}"><circle class="mean" cx="{x + 5}" cy="{y}" r="4.5"/>'
            f'<text class="key" x="{x + 15}" y="{y + 4}">{FAMILIES[family]}</text></g>'
        )
        x += 36 + 7 * len(FAMILIES[family])
    style = "".join(Path(__file__).with_name(name).read_text(encoding="utf-8") for name in _STYLES)
    width, height = _WIDTH + 2 * _EDGE, y + _LINE + 2 * _EDGE
    size = f'width="{width}" height="{height}" viewBox="{-_EDGE} {-_EDGE} {width} {height}"'
    paper = f'<rect class="paper" x="{-_EDGE}" y="{-_EDGE}" width="{width}" height="{height}"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n<style>{style}</style>\n{paper}'
    return "\n".join([head, *out, "</svg>\n"])


def intervals(section: Section) -> Drawn:
    """A row for each system: its name, its marks, its BLEU."""
    scale, width = scale_of(section), _WIDTH - _NAMES - _VALUES
    height = ROW * len(section.standings)
    inside = f'x="{_NAMES}" width="{width}" overflow="visible"'
    out = [f"<svg {inside}>{axis(scale)}</svg>"]
    out.append(f'<svg {inside} y="{_AXIS}" height="{height}">{grid(section, scale)}</svg>')
    names = shortened([standing.name for standing in section.standings], LONGEST)
    for number, standing in enumerate(section.standings):
        y = _AXIS + ROW * number
        own = " own" if standing.line and standing.line.system == BASELINE else ""
        bleu = f"{standing.line.bleu:.2f}" if standing.line else ""
        out.append(
            f'<g class="{family_of_standing(standing)}">'
            f'<text class="name{own}" x="0" y="{y + 16}">{escape(names[standing.name])}</text>'
            f'<svg {inside} y="{y}" height="{ROW}">{marks(standing, scale)}</svg>'
            f'<text class="value{own}" x="{_WIDTH}" y="{y + 16}">{bleu}</text></g>'
        )
    return "\n".join(out), _AXIS + height


def _view(section: Section, beside: Beside, picture: str) -> Drawn | None:
    """With its finding above, and what its axes are below."""
    view = VIEWS[picture](section, beside)
    if view is None:
        return None
    content = f'<svg y="{_LINE}" height="{HEIGHT}" overflow="visible">{view.content}</svg>'
    notes = [(view.finding, 8), (view.axes, HEIGHT + 2 * _LINE)]
    texts = [f'<text class="note" x="0" y="{y}">{escape(text)}</text>' for text, y in notes]
    return "\n".join([content, *texts]), HEIGHT + 2 * _LINE
