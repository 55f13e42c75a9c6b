"""Arguments of the commands that keep scores of a fine-tuned model: ``predict``, ``answer``."""

from __future__ import annotations

from pathlib import Path

from ..command_line import Parser, place


def record_arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("--results", type=place, metavar="FOLDER", help="for the record, such as results/tasks")
    add("--system", metavar="NAME", help="in the record (default: the encoding's)")
    add(
        "--pretrained",
        type=Path,
        metavar="FILE",
        help="what was fine-tuned, if it is elsewhere now",
    )
