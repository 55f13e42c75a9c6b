"""Parameters of the encoders of Chen et al. 2021, table 6, beside what the paper prints.

diet-mt bench parameters
"""

from __future__ import annotations

import argparse

from ..command_line import Parser


def arguments(parser: Parser) -> None:
    """None."""


def run(args: argparse.Namespace) -> None:
    from ..bench.parameters import table

    print(table())
