"""Tables of rows on stdout, and the option for their form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..command_line import Parser

if TYPE_CHECKING:
    from ..blocks import Block

FORMATS = ("text", "markdown")


def format_argument(parser: Parser) -> None:
    parser.add_argument(
        "--format", choices=FORMATS, default="text", help="of the tables (default text)"
    )


def show(blocks: Sequence[Block], form: str, rows: Sequence[Path]) -> None:
    """Prints blocks made of ``rows``, which Markdown names by their paths from the first one."""
    from ..blocks import markdown, text
    from ..made_of import marked

    if form == "markdown":
        page = f"{markdown(blocks)}\n".encode()
        print(marked(page, rows[0], rows).decode(), end="")
    else:
        print(text(blocks), end="")
