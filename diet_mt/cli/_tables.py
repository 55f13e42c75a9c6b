"""Tables of rows on stdout, and the option for their form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..command_line import Parser

if TYPE_CHECKING:
    from ..report.blocks import Block

FORMATS = ("text", "markdown")


def format_argument(parser: Parser) -> None:
    parser.add_argument(
        "--format", choices=FORMATS, default="text", help="of the tables (default text)"
    )


def show(blocks: Sequence[Block], form: str) -> None:
    """Prints blocks in a form."""
    from ..report.blocks import markdown, text

    print(markdown(blocks) if form == "markdown" else text(blocks), end="")
