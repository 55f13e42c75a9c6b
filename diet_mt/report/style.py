"""Style of pictures: colours and families of encodings, matplotlib, and files."""

from __future__ import annotations

import functools
import io
import logging
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..evaluation.records import system_of
from ..system.errors import UserError
from ..system.files import make_folder, writing_bytes

# Family -> where positions enter, and colour.
FAMILIES: Mapping[str, tuple[str, str]] = {
    "input": ("at the input", "#e69f00"),
    "logits": ("in the logits", "#0072b2"),
    "rotation": ("rotation of q and k", "#cc79a7"),
    "projected": ("projected keys", "#009e73"),
    "none": ("no positions", "#888888"),
    "other": ("other", "#888888"),
}
MARKERS = "os^DvPX"
_DPI, _COLORS = 110, 256  # of a PNG


@functools.cache
def encodings() -> Mapping[str, tuple[str, str]]:
    """Encoding -> colour and family (a key of FAMILIES), declared by its class.

    Eight of the colours are Okabe & Ito's (2008), with brown instead of yellow, which are distinct
    in all kinds of colour vision. An encoding without a colour gets one by the hash of its name.
    """
    from ..positions import NAMES  # needs torch

    palette = [encoding.color for encoding in NAMES.values() if encoding.color]
    return {
        name.replace("-", "_"): (encoding.color or hashed(name, palette), encoding.family)
        for name, encoding in NAMES.items()
    }


def hashed(name: str, palette: Sequence[str]) -> str:
    """A colour of ``palette``, determined by ``name``."""
    return palette[zlib.crc32(name.encode()) % len(palette)]


def color_of(name: str) -> str:
    """The colour of a system, the same for its seeds (``diet_rel.2``), sizes (``diet_rel_tiny``)
    and encoders (``roberta_diet_rel``), and lighter for its variants (``rotary_ntk``).
    """
    word, encoding = _word(name), encoding_in(name)
    if not encoding:
        return hashed(word, [color for color, _ in encodings().values()])
    color, _ = encodings()[encoding]
    if encoding == word:
        return color
    parts = (int(color[place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{(2 * part + 255) // 3:02x}" for part in parts)


def family_of(name: str) -> str:
    """Key of FAMILIES for the name of a system or a description of positions."""
    return encodings().get(encoding_in(name), ("", "other"))[1]


def _word(name: str) -> str:
    word = (name.split() or [""])[0].rstrip(",").removeprefix("roberta_").replace("-", "_")
    return system_of(re.sub(r"\.\d+$", "", word))


def encoding_in(name: str) -> str:
    """The encoding in the name of a system, a key of :func:`encodings`; empty if unknown."""
    own = [known for known in encodings() if re.match(rf"{known}([._]|$)", _word(name))]
    return max(own, key=len, default="")


def line_styles(names: Iterable[str], *, dashed: bool = False) -> dict[str, dict[str, str]]:
    """Name -> colour and marker. ``dashed``: also the line style, dashed for variants of another
    system in the picture.
    """
    words = {name: _word(name) for name in names}
    drawn: dict[str, int] = {}
    styles = {}
    for name, word in words.items():
        color = color_of(name)
        place = drawn.setdefault(color, len(drawn))
        variant = encoding_in(name) in set(words.values()) - {word}
        styles[name] = {"color": color, "marker": MARKERS[place % len(MARKERS)]}
        if dashed:
            styles[name]["linestyle"] = "--" if variant else "-"
        drawn[color] = place + 1
    return styles


def pyplot() -> Any:
    """matplotlib's pyplot, for files. Raises :class:`UserError` if it is not installed."""
    for name in ("matplotlib", "PIL"):  # which log every font and chunk
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        import matplotlib as mpl
    except ImportError:
        raise UserError("pictures need matplotlib: pip install matplotlib") from None
    mpl.use("Agg")
    mpl.rcParams["text.parse_math"] = False  # names may contain dollars
    mpl.rcParams["svg.hashsalt"] = "diet_mt"  # reproducible identifiers
    mpl.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot as plt

    return plt


def drawn(figure: Any, kind: str, **how: Any) -> bytes:
    """The reproducible bytes of a picture, which is then closed; a PNG has a palette."""
    out = io.BytesIO()
    try:
        metadata = {"Date": None} if kind == "svg" else None
        figure.savefig(out, format=kind, dpi=_DPI, metadata=metadata, **how)
    except ValueError as error:
        raise UserError(str(error)) from None
    finally:
        pyplot().close(figure)
    if kind == "png":
        from PIL import Image

        image = Image.open(out).convert("RGB")
        small = image.quantize(_COLORS, kmeans=1, dither=Image.Dither.NONE)
        out = io.BytesIO()
        small.save(out, format="png", optimize=True)
    return out.getvalue()


def save(figure: Any, *files: Path) -> None:
    """Writes a picture to each file, in the format of its suffix."""
    for file in files:
        make_folder(file.parent)
        content = drawn(figure, file.suffix.removeprefix("."))
        with writing_bytes(file) as out:
            out.write(content)


def tick_text(value: float, _: object = None) -> str:
    """Label of a tick of a logarithmic axis, without mathtext."""
    text = f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
    return text.replace("e-0", "e-")


def name_ends(axes: Any, ends: Mapping[str, tuple[float, str]]) -> None:
    """Writes names to the right of the axes, at the ends of their curves, unless they overlap.

    ``ends``: name -> height and colour, in decreasing priority.
    """
    axes.figure.draw_without_rendering()  # lays out the axes
    low, high = sorted(axes.get_ylim())
    boxes: list[Any] = []
    for name, (height, color) in ends.items():
        if low <= height <= high:
            place = {"xy": (1.01, height), "xycoords": ("axes fraction", "data"), "va": "center"}
            label = axes.annotate(name, **place, color=color, fontsize=7)
            box = label.get_window_extent()
            if box.count_overlaps(boxes):
                label.remove()
            else:
                boxes.append(box)
