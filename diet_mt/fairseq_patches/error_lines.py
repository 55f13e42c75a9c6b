"""One-line messages, without a traceback, for input errors of fairseq commands.

These are: a ``UserError`` or weights that do not fit, anywhere in the chain of causes; a message of
``messages.yaml``; a wrong path; text that the encoding of the output lacks.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Callable, Iterator, Optional, Type

import yaml

from ..system.errors import UserError, one_liners, printable

TRACEBACK_VARIABLE = "DIET_MT_TRACEBACK"

# A number in a message of fairseq, as printed by numpy >= 2.
_NUMPY_NUMBER = re.compile(r"np\.\w+\(([^()]*)\)")
_WRONG_PATH = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
# Start of torch's message for weights that do not fit; characters shown of its first detail.
_UNFIT = "Error(s) in loading state_dict"
_LONGEST = 200


def one_line(error: BaseException) -> Optional[str]:
    """The message for an error in the user's input; None for any other error."""
    for link in _chain(error):
        if isinstance(link, UserError):
            return str(link)
        if str(link).startswith(_UNFIT):
            first = " ".join("".join(str(link).split("\n")[1:2]).split()) or str(link)
            return (
                f"the checkpoint does not fit the model: {printable(first, _LONGEST)}; the model's "
                "options and the dictionaries of the data must be those that it was trained with"
            )
    text = _NUMPY_NUMBER.sub(r"\1", " ".join(str(error).split()))
    messages = Path(__file__).with_name("messages.yaml").read_text(encoding="utf-8")
    for pattern, line in yaml.safe_load(messages).items():
        if match := re.match(pattern, text):
            return f"{text}{line}" if line[:1] in ("", ";") else match.expand(line)
    if isinstance(error, UnicodeEncodeError) and error.encoding != "utf-8":
        return f"{text}; set PYTHONIOENCODING=utf-8"
    return f"{text}; check the path" if isinstance(error, _WRONG_PATH) else None


one_liners.append(one_line)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and its causes."""
    link: Optional[BaseException] = error
    while link is not None:
        yield link
        # fairseq re-raises what it catches as a plain Exception; other types are new errors.
        wraps = type(link) is Exception and not link.__suppress_context__
        link = link.__cause__ or (link.__context__ if wraps else None)


def excepthook(
    original: Callable[..., object], kind: Type[BaseException], error: BaseException, trace: object
) -> None:
    """Prints ``error: <line>`` instead of a traceback, for an input error of a fairseq command.

    With ``DIET_MT_TRACEBACK=1`` it prints both. The exit status is 1.
    """
    line = one_line(error) if _in_fairseq_command() else None
    if line is None or os.environ.get(TRACEBACK_VARIABLE):
        original(kind, error, trace)
    if line is not None:
        print(f"error: {printable(line)}", file=sys.stderr)


def _in_fairseq_command() -> bool:
    """Whether this is a command such as ``fairseq-train`` or ``python -m fairseq_cli.train``."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    name = spec.name if spec is not None else os.path.basename("".join(sys.argv[:1]))
    return name.startswith(("fairseq-", "fairseq_cli"))
