"""Where an encoding acts: BLEU by the kinds of attention that it is in, from none to all three."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ..blocks import number
from ..evaluation.groups import encoding_of
from .families import family_of
from .standings import Section, Standing
from .tables import Cell, Column, Table

_ALL = ("encoder", "decoder", "cross")
_BESIDE = {
    (): "in nothing else",
    ("decoder",): "in the decoder",
    ("cross",): "in cross-attention",
    ("decoder", "cross"): "in decoder and cross-attention",
}


@dataclass(frozen=True)
class Where:
    """``names``: of the standings where the encoding acts in some of its attention."""

    caption: str
    family: str
    table: Table
    names: frozenset[str]


def where_they_act(section: Section) -> list[Where]:
    """A table for each encoding that was trained in parts of its attention, every kind of attention
    among them. Acting nowhere is the system without positions.

    Names alike up to the first dot are of one; where two claim a cell, the shorter name has it.
    Models with positions at the input as well have no table.
    """
    found: dict[tuple[str, str, str], dict[tuple[str, ...], Standing]] = {}
    nowhere: dict[frozenset[str], Standing] = {}
    measured = [(each, each.line) for each in section.standings if each.line]
    for standing, line in sorted(measured, key=lambda pair: len(pair[1].system)):
        arch = line.results[0].arch
        options, places = _options_and_places(encoding_of(line.results[0]))
        if options[:1] == ["none"]:
            nowhere.setdefault(frozenset(options[1:]), standing)
        elif not any(option.startswith("input=") for option in options):
            own = found.setdefault((line.system.partition(".")[0], arch, " ".join(options)), {})
            own.setdefault(places, standing)
    # No part is larger than what the encoding does by default: with a part for each kind of
    # attention, that is all three.
    shown = {
        key: cells
        for key, cells in found.items()
        if {place for places in cells if places != _ALL for place in places} == set(_ALL)
    }
    archs = Counter(arch for _, arch, _ in shown)
    tables = []
    for (name, arch, encoding), cells in shown.items():
        parts = frozenset(each.name for places, each in cells.items() if places != _ALL)
        for alike, each in nowhere.items():
            if alike <= set(encoding.split()):
                cells.setdefault((), each)
        more = f" ({name}: {encoding})" if archs[arch] > 1 else ""
        caption = f"BLEU by where {arch} acts{more}"
        tables.append(Where(caption, family_of(encoding), _table(cells), parts))
    return tables


def _options_and_places(positions: str) -> tuple[list[str], tuple[str, ...]]:
    """``diet-rel in=encoder,cross scale=head`` -> ``diet-rel``, ``scale=head``; encoder, cross."""
    words = positions.split()
    places = next((word[3:] for word in words if word.startswith("in=")), "")
    options = [word for word in words if not word.startswith("in=")]
    return options, tuple(places.split(",")) if places else _ALL


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
    return Cell(number(bleu, ".2f", standing.half_width), bleu)
