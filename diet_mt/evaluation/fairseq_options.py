"""fairseq with the plugin, and its readers of options."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from ..system.errors import UserError
from ..system.options import unknown

_CHOICE = re.compile(r"argument (\S+): invalid choice: '(.*?)' \(choose from (.*)\)", re.S)
_UNKNOWN = "unrecognized arguments: "


def import_fairseq() -> None:
    """Registers the plugin, without log messages and warnings of fairseq."""
    from .. import register

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        register()
    for name in ("", "fairseq"):
        logging.getLogger(name).setLevel(logging.WARNING)


def quiet() -> None:
    """Hides messages of loaders and readers below the level of warnings."""
    for name in ("fairseq", "hydra", "diet_mt.tasks"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # fairseq always requests pinned memory, and torch warns where there is no GPU to pin it for.
    warnings.filterwarnings("ignore", message="'pin_memory'")


def read_options(parser: Any, words: Sequence[str], own: Iterable[str] = ()) -> Any:
    """The options that ``parser`` reads; ``own``: names to suggest. Raises UserError for others."""
    from fairseq.options import parse_args_and_arch

    def error(message: str) -> NoReturn:
        word = message.removeprefix(_UNKNOWN).split()[0].partition("=")[0]
        if message.startswith(_UNKNOWN) and word[:1] == "-":
            message = unknown("option", word, [*parser._option_string_actions, *own])
        elif match := _CHOICE.match(message):
            option, value, choices = match.groups()
            names = [name.strip(" '") for name in choices.split(",")]
            message = f"{option.split('/')[0]}: {unknown('value', value, names)}"
        raise UserError(message)

    parser.error = error
    try:
        return parse_args_and_arch(parser, list(words))
    except UserError:
        raise
    except Exception as problem:  # of fairseq's own readers of lists and the like
        raise UserError(f"fairseq rejects these options ({problem})") from None
