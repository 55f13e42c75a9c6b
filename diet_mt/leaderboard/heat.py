"""Positional logits of trained models as pictures: maps as PNG in the page, curves as lines.

A map has one square for each head. Colours are orange above zero, blue below, and the stronger the
larger: full colour is the largest value of a system in attention of this kind. Zero lets the paper
through; grey are keys that a query cannot see.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from ..errors import UserError
from ..evaluation.json_rows import read_dicts
from .charts import Curve, curves
from .scales import Scale
from .views import View

# Of diet-mt figures.
FILE, HEADS = (Path("figures", name) for name in ("patterns.jsonl", "heads.jsonl"))
_LEVELS = 7  # of a colour, each way; with 0 and what is closed they are 16, in 4 bits
_CLOSED = 2 * _LEVELS + 1
_GREY = (0x80, 0x88, 0x8E, 0x60)
_COLOURS = 8  # of heads' lines, in marks.css
_ABOVE, _BELOW = (0xD5, 0x5E, 0x00), (0x00, 0x72, 0xB2)
_OF_PATTERNS: Mapping[str, Any] = {
    "system": str,
    "attention": str,
    "layers": list[int],
    "head": int,
    "first_distance": int,
    "by_distance": list[float],
    "values": list[list[Optional[float]]],
}
_OF_HEADS: Mapping[str, Any] = {
    "system": str,
    "positions_pattern": Optional[str],
    "near_tokens": int,
    "tokens": int,
}
_KINDS = {"encoder": "encoder", "decoder": "decoder", "cross": "cross-attention"}


@dataclass(frozen=True)
class HeatMap:
    """``image``: a data URL, ``width`` × ``height`` positions. ``most``: what has full colour."""

    title: str
    image: str
    width: int
    height: int
    heads: Sequence[int]
    most: float


@dataclass(frozen=True)
class Patterns:
    """All of one system: maps where positions decide, views where distances do.

    ``local``: how many of its ``heads`` have, by their positions alone, over ``tokens`` of them, at
    least half of their weight within ``near`` of the query's own; 0 of 0: not known.
    """

    system: str
    local: int
    heads: int
    near: int
    tokens: int
    maps: Sequence[HeatMap]
    views: Sequence[View]


Matrix = Sequence[Sequence[float | None]]


def read_patterns(folders: Iterable[Path]) -> list[Patterns]:
    """Of ``FILE`` in these folders, as far as it is there. Raises UserError for another file."""
    heads: dict[str, dict[str, list[dict[str, Any]]]] = {}
    looks: dict[str, list[dict[str, Any]]] = {}
    for folder in sorted(folders):
        file = folder / HEADS
        others = {"layer": int, "positions_layers": list[int]}
        for row in read_dicts(file, _OF_HEADS, others) if file.exists() else ():
            # A table that layers share looks the same in each; older rows do not name them.
            own = [row.get("layer")]
            if row["positions_pattern"] and (row.get("positions_layers") or own)[:1] == own:
                looks.setdefault(row["system"], []).append(row)
        for row in _rows(folder / FILE):
            title = f"{_KINDS.get(row['attention'], row['attention'])}, {_layers(row['layers'])}"
            heads.setdefault(row["system"], {}).setdefault(title, []).append(row)
    return [_patterns(system, own, looks.get(system, ())) for system, own in heads.items()]


def _rows(file: Path) -> list[dict[str, Any]]:
    """Raises UserError also where a head has not either values or curves, as all of its layers."""
    rows = read_dicts(file, _OF_PATTERNS) if file.exists() else []
    curved: dict[tuple[object, ...], bool] = {}
    for number, row in enumerate(rows, start=1):
        curve, whole = bool(row["by_distance"]), bool(row["values"]) and all(row["values"])
        same = curved.setdefault((row["system"], row["attention"], *row["layers"]), curve)
        if not row["layers"] or curve == whole or same != curve:
            raise UserError(f"{file}, row {number}: no layers, or not either values or by_distance")
    return rows


def finding(found: Sequence[Patterns]) -> str:
    """How many heads of each system look near."""
    known = [each for each in found if each.heads]
    if not known:
        return ""
    parts = [f"{each.local} of {each.heads} with {each.system}" for each in known]
    near, tokens = (
        " or ".join(map(str, sorted({getattr(each, name) for each in known})))
        for name in ("near", "tokens")
    )
    return (
        f"Heads that by their positions alone, over {tokens} tokens, have at least half of their "
        f"weight within {near} tokens of the query: {', '.join(parts)}."
    )


def _layers(layers: Sequence[int]) -> str:
    return f"layer {layers[0]}" if len(layers) == 1 else f"layers {layers[0]}–{layers[-1]}"


def _patterns(
    system: str,
    heads: Mapping[str, Sequence[Mapping[str, Any]]],
    looks: Sequence[Mapping[str, Any]],
) -> Patterns:
    most: dict[str, float] = {}
    values = []
    for row in (row for rows in heads.values() for row in rows):
        own = [abs(v) for line in row["values"] for v in line if v is not None]
        most[row["attention"]] = max([most.get(row["attention"], 0), *own])
        values += row["by_distance"]
    maps, views = [], []
    for title, rows in heads.items():
        if rows[0]["by_distance"]:
            views.append(_by_distance(title, rows, Scale(values)))
        else:
            maps.append(heat_map(title, rows, most[rows[0]["attention"]]))
    local = sum(row["positions_pattern"] == "local" for row in looks)
    near, tokens = (
        max((row[name] for row in looks), default=0) for name in ("near_tokens", "tokens")
    )
    return Patterns(system, local, len(looks), near, tokens, maps, views)


def _by_distance(title: str, rows: Sequence[Mapping[str, Any]], y: Scale) -> View:
    found = [
        Curve(
            f"head {row['head']}",
            f"head-{(row['head'] - 1) % _COLOURS + 1}",
            list(enumerate(row["by_distance"], start=row["first_distance"])),
            important=True,
        )
        for row in rows
    ]
    x = Scale([place for each in found for place, _ in each.points], margin=(0.09, 0.14))
    return View(title, "", "Added to the logit, by distance i − j", curves(found, x, y))


def heat_map(title: str, rows: Sequence[Mapping[str, Any]], most: float) -> HeatMap:
    """The heads side by side, with a gap between. ``rows``: ``head`` and ``values`` of each."""
    heads: list[Matrix] = [row["values"] for row in rows]
    height = max(len(head) for head in heads)
    lines: list[list[int]] = [[] for _ in range(height)]
    for number, head in enumerate(heads):
        width = max(len(row) for row in head)
        for line, row in zip(lines, [*head, *[[]] * (height - len(head))], strict=True):
            line.extend([_LEVELS] * (number > 0))
            levels = [
                _CLOSED if value is None else _LEVELS + round(_LEVELS * value / (most or 1))
                for value in row
            ]
            line.extend(levels + [_LEVELS] * (width - len(levels)))
    image = f"data:image/png;base64,{base64.b64encode(_png(lines)).decode()}"
    return HeatMap(title, image, len(lines[0]), height, [row["head"] for row in rows], most)


def _png(lines: Sequence[Sequence[int]]) -> bytes:
    """Levels 0 to 14, and 15 for what is closed, as an image with a palette. Not compressed: the
    same bytes everywhere.

    Portable Network Graphics, third edition (W3C 2025), sections 5 and 11.
    """
    shares = [(level - _LEVELS) / _LEVELS for level in range(2 * _LEVELS + 1)]
    colours = bytes(part for share in shares for part in (_ABOVE if share > 0 else _BELOW))
    colours += bytes(_GREY[:3])
    opaque = bytes([*(round(255 * abs(share)) for share in shares), _GREY[3]])
    packed = b"".join(
        b"\0" + bytes.fromhex("".join(f"{level:x}" for level in line) + "0" * (len(line) % 2))
        for line in lines
    )
    head = struct.pack(">IIBBBBB", len(lines[0]), len(lines), 4, 3, 0, 0, 0)
    parts = [(b"IHDR", head), (b"PLTE", colours), (b"tRNS", opaque)]
    parts += [(b"IDAT", zlib.compress(packed, 0)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
