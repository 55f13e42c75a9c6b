"""What the commands that draw pictures have in common."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from .errors import UserError
from .files import writing_bytes


def pyplot() -> Any:
    """matplotlib's, drawing into files. Raises UserError where it is not installed."""
    for name in ("matplotlib", "PIL"):  # they report every font and chunk that they look at
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        mpl.rcParams["svg.hashsalt"] = "diet_mt"  # names inside an SVG would be random otherwise
        from matplotlib import pyplot as plt
    except ImportError:
        raise UserError("a picture needs matplotlib: pip install matplotlib") from None
    return plt


def save(figure: Any, *files: Path) -> None:
    """Writes the picture to each file, in the format that its name says, and closes it.

    The same picture gives the same file. Raises UserError where it cannot be written.
    """
    try:
        for file in files:
            kind = file.suffix.removeprefix(".")
            # SVG would hold the time of its writing.
            about = {"Date": None} if kind == "svg" else None
            with writing_bytes(file) as out:
                figure.savefig(out, format=kind, dpi=150, metadata=about)
    except ValueError as error:  # also UserError, which stays as it is
        raise error if isinstance(error, UserError) else UserError(str(error)) from None
    finally:
        pyplot().close(figure)
