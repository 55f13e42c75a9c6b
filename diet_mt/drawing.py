"""What the commands that draw pictures have in common."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from .errors import UserError


def pyplot() -> Any:
    """matplotlib's, drawing into files. Raises UserError where it is not installed."""
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # it reports every font it looks at
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        mpl.rcParams["svg.hashsalt"] = "diet_mt"  # names inside an SVG would be random otherwise
        from matplotlib import pyplot as plt
    except ImportError:
        raise UserError("a picture needs matplotlib: pip install matplotlib") from None
    return plt


def save(figure: Any, file: Path) -> None:
    """Writes the picture, in the format that its name says, and closes it.

    The same picture gives the same file. Raises UserError where it cannot be written.
    """
    try:
        # SVG would hold the time of its writing.
        figure.savefig(file, dpi=150, metadata={"Date": None} if file.suffix == ".svg" else None)
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: cannot be written ({error})") from None
    finally:
        pyplot().close(figure)
