"""BLEU with its intervals as a picture: the marks of each system, in a row of its own.

Colours are classes of the style sheet. ``page`` and ``svg`` put names and values beside the marks.
"""

from __future__ import annotations

from collections.abc import Iterator

from .scales import Scale
from .standings import Section, Standing

ROW = 24  # CSS pixels
_HALF = ROW // 2


def scale_of(section: Section) -> Scale:
    return Scale([value for each in section.standings for value in _values(each)])


def _values(standing: Standing) -> Iterator[float]:
    """All that has a mark."""
    if standing.published:
        yield standing.published.bleu
    if standing.line:
        yield from (result.bleu for result in standing.line.results)
        half = standing.half_width or 0.0
        yield from (standing.line.bleu - half, standing.line.bleu + half)


def marks(standing: Standing, scale: Scale) -> str:
    """SVG in a row of its own: interval, seeds, mean, and the paper's BLEU."""
    line, out = standing.line, []
    if line:
        half = standing.half_width or 0.0
        ends = [scale.place(line.bleu + each) for each in (-half, half)]
        out.append(f'<line class="bar" x1="{ends[0]}" x2="{ends[1]}" y1="{_HALF}" y2="{_HALF}"/>')
        for end in ends:
            out.append(
                f'<line class="bar" x1="{end}" x2="{end}" y1="{_HALF - 3}" y2="{_HALF + 3}"/>'
            )
        out.append(f'<circle class="mean" cx="{scale.place(line.bleu)}" cy="{_HALF}" r="4.5"/>')
        for result in line.results if line.several_seeds else ():
            place = scale.place(result.bleu)
            out.append(f'<circle class="seed" cx="{place}" cy="{_HALF}" r="2.5"/>')
    if standing.published:
        place = scale.place(standing.published.bleu)
        shape = '<path d="M0-5 5 0 0 5-5 0Z"/>'
        out.append(f'<svg class="published" x="{place}" y="{_HALF}">{shape}</svg>')
    return "".join(out)


def grid(section: Section, scale: Scale) -> str:
    """SVG behind the marks, as high as what it is put in: round numbers, and the baseline."""
    places = [("grid", scale.place(tick)) for tick in scale.ticks()]
    baseline = section.group.baseline
    if baseline is not None and scale.low <= baseline.bleu <= scale.high:
        places.append(("baseline", scale.place(baseline.bleu)))
    return "".join(
        f'<line class="{kind}" x1="{place}" x2="{place}" y1="0" y2="100%"/>'
        for kind, place in places
    )


def axis(scale: Scale) -> str:
    """SVG of the numbers above the rows."""
    return "".join(
        f'<text class="tick" x="{scale.place(tick)}" y="14">{scale.text(tick)}</text>'
        for tick in scale.ticks()
    )
