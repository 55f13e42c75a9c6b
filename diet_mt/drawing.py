"""What the commands that draw pictures have in common."""

from __future__ import annotations

import io
import logging
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .errors import UserError
from .files import make_folder, writing_bytes
from .made_of import marked

# Of each system in every picture. The first eight are Okabe & Ito's (2008), but for a brown instead
# of their yellow: told apart by all kinds of colour vision.
COLORS: Mapping[str, str] = {
    "sinusoidal": "#000000",
    "diet_rel": "#d55e00",
    "diet_abs": "#0072b2",
    "shaw": "#009e73",
    "rotary": "#cc79a7",
    "t5": "#e69f00",
    "tupe_abs": "#56b4e9",
    "learned": "#7f4a1e",
    "tupe_rel": "#332288",
    "none": "#aaaaaa",
    "alibi": "#882255",
    "kerple": "#a3a300",
    "fire": "#44cc44",
    "concat": "#f032e6",
    "deberta": "#ff8f80",
    "pope": "#9467bd",
    "shape": "#aec7e8",
    "cape": "#98df8a",
    "sandwich": "#c4a494",
    "linformer": "#17becf",
    "diet_abs_lin": "#1f4e79",
}
MARKERS = "os^DvPX"


def color_of(name: str) -> str:
    """Colour of a system, always the same: of its seeds (``diet_rel.2``), sizes (``diet_rel_tiny``)
    and encoder (``roberta_diet_rel``), too. A variant (``rotary_ntk``) has that of its system,
    lighter; any other name one of the table's.
    """
    word = _word(name)
    system = system_of(name)
    if not system:
        return list(COLORS.values())[zlib.crc32(word.encode()) % len(COLORS)]
    color = COLORS[system]
    if system == word:
        return color
    parts = (int(color[place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{(2 * part + 255) // 3:02x}" for part in parts)


def _word(name: str) -> str:
    word = (name.split() or [""])[0].rstrip(",").removeprefix("roberta_").replace("-", "_")
    return re.sub(r"_(tiny|small|base|big)$", "", re.sub(r"\.\d+$", "", word))


def system_of(name: str) -> str:
    """The system of the table above that has a name as ``color_of`` reads it; "" for none."""
    own = [known for known in COLORS if re.match(rf"{known}([._]|$)", _word(name))]
    return max(own, key=len, default="")


def dashes(names: Iterable[str]) -> dict[str, str]:
    """The line of each name: dashed for a variant whose system is drawn, too."""
    words = {name: _word(name) for name in names}
    drawn = set(words.values())
    variants = {name for name, word in words.items() if system_of(name) in drawn - {word}}
    return {name: "--" if name in variants else "-" for name in words}


def line_styles(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """``color`` and ``marker`` of each name. Markers take turns from colour to colour, and within
    one colour.
    """
    drawn: dict[str, int] = {}
    styles = {}
    for name in dict.fromkeys(names):
        color = color_of(name)
        place = drawn.setdefault(color, len(drawn))
        styles[name] = {"color": color, "marker": MARKERS[place % len(MARKERS)]}
        drawn[color] = place + 1
    return styles


def pyplot() -> Any:
    """matplotlib's, drawing into files. Raises UserError where it is not installed."""
    for name in ("matplotlib", "PIL"):  # they report every font and chunk that they look at
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        mpl.rcParams["text.parse_math"] = False  # a name may have dollars
        mpl.rcParams["svg.hashsalt"] = "diet_mt"  # names inside an SVG would be random otherwise
        from matplotlib import pyplot as plt
    except ImportError:
        raise UserError("a picture needs matplotlib: pip install matplotlib") from None
    return plt


def save(figure: Any, *files: Path, rows: Sequence[Path] = ()) -> None:
    """Writes the picture to each file, in the format that its name says, makes their folders, and
    closes it; ``rows``: files that it was made of, which PNG and SVG then name.

    The same picture gives the same file. Raises UserError where it cannot be written.
    """
    try:
        for file in files:
            make_folder(file.parent)
            kind = file.suffix.removeprefix(".")
            # SVG would hold the time of its writing.
            about = {"Date": None} if kind == "svg" else None
            drawn = io.BytesIO()
            figure.savefig(drawn, format=kind, dpi=150, metadata=about)
            content = drawn.getvalue()
            with writing_bytes(file) as out:
                named = rows and kind in ("svg", "png")
                out.write(marked(content, file, rows) if named else content)
    except ValueError as error:  # also UserError, which stays as it is
        raise error if isinstance(error, UserError) else UserError(str(error)) from None
    finally:
        pyplot().close(figure)


def tick_text(value: float, _: object = None) -> str:
    """As it stands along a logarithmic axis; formulas would be shown unread."""
    text = f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
    return text.replace("e-0", "e-")
