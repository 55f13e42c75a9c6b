"""fairseq with the plugin, and its readers of options, which refuse in one line."""

from __future__ import annotations

import argparse
import logging
import re
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from ..command_line import unknown
from ..errors import UserError

_CHOICE = re.compile(r"argument (\S+): invalid choice: '(.*?)' \(choose from (.*)\)", re.S)
_TYPE = re.compile(r"argument (\S+): invalid (\S+) value: '(.*)'", re.S)
_KINDS = {"int": "a whole number", "float": "a number"}


def import_fairseq() -> None:
    """With all that the plugin registers, and without its chatter."""
    from .. import register

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        register()
    for name in ("", "fairseq"):
        logging.getLogger(name).setLevel(logging.WARNING)


def quiet() -> None:
    """Only warnings from loaders and readers; the commands print the rest."""
    for name in ("fairseq", "hydra", "diet_mt.tasks"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # fairseq always asks for pinned memory, and torch warns where there is no GPU to pin it for.
    warnings.filterwarnings("ignore", message="'pin_memory'")


def read_options(parser: Any, words: Sequence[str], own: Iterable[str] = ()) -> Any:
    """Reads options as the program of ``parser`` does, with those of model, task and optimizer.

    ``own``: options of the command that the user gave them to, for the nearest name.
    """
    from fairseq.options import parse_args_and_arch

    known = list(own)

    def error(message: str) -> NoReturn:
        raise UserError(_reworded(parser, message, known))

    parser.error = error
    try:
        return parse_args_and_arch(parser, list(words))
    except UserError:
        raise
    except Exception as problem:  # of fairseq's own readers of lists and the like
        raise UserError(f"fairseq would not take these options ({problem})") from None


def _reworded(parser: argparse.ArgumentParser, message: str, own: list[str]) -> str:
    known = [*parser._option_string_actions, *own]
    if message.startswith("unrecognized arguments: "):
        word = message.removeprefix("unrecognized arguments: ").split()[0].partition("=")[0]
        if word[:1] != "-":
            return f"unexpected argument '{word}'"
        return unknown("option", word, known)
    if match := _CHOICE.match(message):
        option, value, choices = match.groups()
        names = [name.strip(" '") for name in choices.split(",")]
        return f"{option.split('/')[0]}: {unknown('value', value, names)}"
    if match := _TYPE.match(message):
        option, kind, value = match.groups()
        return f"{option.split('/')[0]} {value}: expected {_KINDS.get(kind, 'another value')}"
    return message.removeprefix("argument ")
