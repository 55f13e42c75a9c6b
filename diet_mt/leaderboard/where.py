"""Where an encoding acts: BLEU by the kinds of attention that it is in, from none to all three."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .standings import Section, Standing
from .tables import Cell, Column, Table

_ALL = ("encoder", "decoder", "cross")
_BESIDE = {
    (): "in nothing else",
    ("decoder",): "in the decoder",
    ("cross",): "in cross-attention",
    ("decoder", "cross"): "in both",
}


@dataclass(frozen=True)
class Where:
    """``names``: of the standings where the encoding acts in some of its attention."""

    caption: str
    table: Table
    names: frozenset[str]


def where_they_act(section: Section) -> Iterator[Where]:
    """A table for each encoding that was trained in parts of its attention, every kind of attention
    among them; names alike up to the first dot are of one. Acting nowhere is the system without
    positions.
    """
    found: dict[tuple[str, str, str], dict[tuple[str, ...], Standing]] = {}
    nowhere = None
    for standing in section.standings:
        if standing.line is None:
            continue
        result = standing.line.results[0]
        words = result.positions.split()
        if words[:1] == ["none"]:
            nowhere = standing
            continue
        kinds = [word.partition("=")[2] for word in words if word.startswith("in=")]
        rest = " ".join(word for word in words if not word.startswith("in="))
        places = tuple(kinds[0].split(",")) if kinds else _ALL
        key = result.system.partition(".")[0], result.arch, rest
        found.setdefault(key, {}).setdefault(places, standing)
    for (_, arch, _), own in found.items():
        parts = {places: each for places, each in own.items() if places != _ALL}
        # No part is larger than what the encoding does by default: that is all three then.
        if {place for places in parts for place in places} == set(_ALL):
            if nowhere:
                own[()] = nowhere
            names = frozenset(each.name for each in parts.values())
            yield Where(f"BLEU by where {arch} acts", _table(own), names)


def _table(cells: dict[tuple[str, ...], Standing]) -> Table:
    """A row with the encoder and one without, a column for what is beside it."""
    first = Column("", (Cell("not in the encoder"), Cell("in the encoder")), number=False)
    columns = [
        Column(title, (_cell(cells.get(beside)), _cell(cells.get(("encoder", *beside)))))
        for beside, title in _BESIDE.items()
    ]
    return [first, *columns]


def _cell(standing: Standing | None) -> Cell:
    if standing is None or standing.line is None:
        return Cell()
    bleu = standing.line.bleu
    return Cell(f"{bleu:.2f} ± {standing.half_width:.2f}", bleu)
