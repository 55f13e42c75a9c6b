"""Completion of diet-mt for a shell: commands, options, values.

eval "$(diet-mt completion bash)"                       in ~/.bashrc
diet-mt completion zsh > ~/.zfunc/_diet-mt              a folder of $fpath
"""

from __future__ import annotations

import argparse

from ..command_line import Parser

SHELLS = ("bash", "zsh")


def arguments(parser: Parser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="bash or zsh")


def run(args: argparse.Namespace) -> None:
    import shtab

    from .main import tree

    print(shtab.complete(tree(), shell=args.shell))
