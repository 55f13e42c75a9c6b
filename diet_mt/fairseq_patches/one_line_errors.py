"""How a fairseq command shows errors that a user can mend: one line, no traceback.

fairseq's commands let exceptions through to the interpreter, and raise what is wrong with the input
as plain exceptions. Replaced: ``sys.excepthook``, by a function that calls it for all other errors,
and for every error of a program that only imports the package.
"""

from __future__ import annotations

import functools
import os
import sys
from types import TracebackType
from typing import Callable, Iterator, Optional, Type

from ..errors import UserError

TRACEBACK_VARIABLE = "DIET_MT_TRACEBACK"

# How fairseq's own messages about bad input begin, and what they leave out. It raises them as plain
# exceptions.
_FAIRSEQ_MESSAGES = {
    "Could not infer language pair": "the data folder holds nothing that fairseq-preprocess made",
    "Dataset not found": "check path and subset, and that fairseq-preprocess has finished there",
    "Model file not found": "check --path",
    "Size of sample #": "or train with a larger --max-source-positions or --max-target-positions",
    "The dataset is empty": "with few sentences, give --required-batch-size-multiple 1",
    "--share-all-embeddings ": "or leave --share-all-embeddings out",
    "--finetune-from-model ": "check the option",
    "--path required": "give the checkpoint to read",
    "Must specify batch size": "4096 tokens are a usual size",
    "Sentences lengths should not exceed max_tokens": "give a larger --max-tokens",
    "Neither args nor cfg exist in state": "the checkpoint was not written by fairseq-train",
}
# torch's message where weights and model differ, and how many characters of it are shown.
_UNFIT = "Error(s) in loading state_dict"
_LONGEST = 200
_WRONG_PATH = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


def one_line(error: BaseException) -> Optional[str]:
    """The line that says what is wrong with the user's input, or None for any other error.

    fairseq wraps what it catches ("please ensure that the architectures match"), so causes are
    searched too.
    """
    for link in _chain(error):
        if isinstance(link, UserError):
            return " ".join(str(link).split())
        if str(link).startswith(_UNFIT):
            return _unfit(str(link))
    text = " ".join(str(error).split())
    for start, hint in _FAIRSEQ_MESSAGES.items():
        if text.startswith(start):
            return f"{text}; {hint}"
    return f"{text}; check the path" if isinstance(error, _WRONG_PATH) else None


def _unfit(text: str) -> str:
    """torch lists every parameter that does not fit, which can be hundreds: the first will do."""
    first = " ".join(text.split("\n")[1].split()) if "\n" in text else text
    if len(first) > _LONGEST:
        first = f"{first[:_LONGEST]} ..."
    return (
        f"the checkpoint does not fit the model: {first}; the model's options and the dictionaries "
        "of the data must be those that it was trained with"
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    link: Optional[BaseException] = error
    while link is not None:
        yield link
        link = link.__cause__ or link.__context__


def show_in_one_line(previous: Callable[..., object]) -> Callable[..., object]:
    """A hook that shows bad input of a fairseq command as ``error: <line>`` on stderr; the
    interpreter then exits with status 1.

    With ``DIET_MT_TRACEBACK=1`` in the environment ``previous`` shows the traceback as well.
    """

    @functools.wraps(previous)
    def hook(
        kind: Type[BaseException], error: BaseException, trace: Optional[TracebackType]
    ) -> None:
        line = one_line(error) if _in_fairseq_command() else None
        if line is None or os.environ.get(TRACEBACK_VARIABLE):
            previous(kind, error, trace)
        if line is not None:
            print(f"error: {line}", file=sys.stderr)

    return hook


def _in_fairseq_command() -> bool:
    """Whether this is ``fairseq-train`` and the like, or ``python -m fairseq_cli.train``."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    name = spec.name if spec is not None else os.path.basename("".join(sys.argv[:1]))
    return name.startswith(("fairseq-", "fairseq_cli"))


# hydra shows errors in its own way, with a traceback, unless it is told to let them through.
os.environ.setdefault("HYDRA_FULL_ERROR", "1")
sys.excepthook = show_in_one_line(sys.excepthook)
