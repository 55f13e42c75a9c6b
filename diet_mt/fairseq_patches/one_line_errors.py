"""Errors of a fairseq command caused by user input: one line, no traceback.

fairseq's commands let exceptions through to the interpreter, and raise what is wrong with the input
as plain exceptions. Replaced: ``sys.excepthook``, by a function that calls it for all other errors,
and for every error of a program that only imports the package.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from types import TracebackType
from typing import Callable, Iterator, Optional, Type

from ..errors import UserError, printable

TRACEBACK_VARIABLE = "DIET_MT_TRACEBACK"

# fairseq's messages about bad input, which it raises as plain exceptions: a pattern of how they
# begin -> the line shown. One that starts with ";" is appended to the message; "" adds nothing.
_FAIRSEQ_MESSAGES = {
    # data
    "Could not infer language pair": "; no data of fairseq-preprocess in this folder",
    "Dataset not found|Cannot find dataset|could not find dataset": (
        "; check path and subset, and that fairseq-preprocess has finished there"
    ),
    "Index file doesn't match expected format": "; run fairseq-preprocess again",
    "Source and target must contain the same number": "; run fairseq-preprocess again on both",
    "Incorrect dictionary format|Incorrect encoding detected": "",
    "Duplicate word found when loading Dictionary: '(.*?)'": (
        r"the dictionary has '\1' twice: remove one, or append #fairseq:overwrite to the second"
    ),
    r"Size of sample #(\d+) is invalid \(=(.+?)\) since max_positions=(.+?), skip": (
        r"sentence #\1 (the first is #0) is too long: \2 tokens of at most \3 (source, target); "
        "give --skip-invalid-size-inputs-valid-test, see --beyond-table, or train with a "
        "larger --max-source-positions or --max-target-positions"
    ),
    "The dataset is empty": (
        "no sentences: the data is empty, or all are longer than the model's positions"
    ),
    "Sentences lengths should not exceed max_tokens": "; give a larger --max-tokens",
    "expected num_classes=": "",
    # options
    "Must specify batch size": "; 4096 tokens are a usual size",
    "--path required": "; give the checkpoint to read",
    "None$": "--task is missing",  # KeyError(None) of the registry
    "'bleu'$": "--best-checkpoint-metric bleu needs --eval-bleu",
    ".*No such file or directory: '@@ '": "--replace-unk needs alignments, which fairseq lacks",
    "--share-all-embeddings ": "; or leave --share-all-embeddings out",
    r"--finetune-from-model and --restore-file": (
        "--finetune-from-model and --restore-file exclude each other"
    ),
    "Cannot use a fixed learning rate schedule with ([^ .]+)": r"--lr-scheduler \1 takes one --lr",
    "min_len cannot be larger than max_len": (
        "--min-len is larger than the length limit; lower it, or raise --max-len-b"
    ),
    "Must set task.num_classes": "--num-classes is missing",
    "DiverseBeamSearch requires|Either --max_update or|Failed to import --user-dir|Please specify "
    "criterion|phase ratios must|--": "",
    # checkpoints
    "Model file not found": "; check --path",
    "Neither args nor cfg exist in state": (
        "no configuration in the checkpoint: fairseq-train did not write it"
    ),
    r"(Criterion|Optimizer) does not match; .*\. (\S+) vs (\S+)": (
        r"the checkpoint was trained with \2, this training has \3; choose the same, or give "
        "--reset-optimizer"
    ),
    "Cannot resume training due to dataloader mismatch": (
        "the checkpoint is further in its epoch than this data is long; give the data and batch "
        "options of its training, or --reset-dataloader"
    ),
    # training
    "(AMP: )?Minimum loss scale reached": "",
    "gradients are Nan/Inf": "; lower --lr, or give --clip-norm",
    "Fatal error: gradients are inconsistent between workers": (
        "gradients differ between workers; give --ddp-backend legacy_ddp, and GPUs of one kind"
    ),
    "Trying to use an uninitialized 'dummy' batch": "fewer batches than GPUs; use fewer GPUs",
    r"CUDA out of memory\. Tried to allocate ([\d.]+ \w+)": (
        r"GPU out of memory (\1 more); lower --max-tokens or --batch-size, and raise --update-freq"
    ),
}
# How numpy >= 2 prints a number, which fairseq does within its messages.
_NUMPY_NUMBER = re.compile(r"np\.\w+\(([^()]*)\)")
# torch's message where weights and model differ, and how many characters of it are shown.
_UNFIT = "Error(s) in loading state_dict"
_LONGEST = 200
_WRONG_PATH = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


def one_line(error: BaseException) -> Optional[str]:
    """The line about the user's input, or None for any other error.

    fairseq wraps what it catches ("please ensure that the architectures match"), so causes are
    searched too.
    """
    for link in _chain(error):
        if isinstance(link, UserError):
            return str(link)
        if str(link).startswith(_UNFIT):
            return _unfit(str(link))
    text = _NUMPY_NUMBER.sub(r"\1", " ".join(str(error).split()))
    for pattern, line in _FAIRSEQ_MESSAGES.items():
        if match := re.match(pattern, text):
            return f"{text}{line}" if line[:1] in ("", ";") else match.expand(line)
    if isinstance(error, UnicodeEncodeError) and error.encoding != "utf-8":
        return f"{text}; set PYTHONIOENCODING=utf-8"
    return f"{text}; check the path" if isinstance(error, _WRONG_PATH) else None


def _unfit(text: str) -> str:
    """torch lists every parameter that does not fit, which can be hundreds: the first will do."""
    first = " ".join(text.split("\n")[1].split()) if "\n" in text else text
    return (
        f"the checkpoint does not fit the model: {printable(first, _LONGEST)}; the model's options "
        "and the dictionaries of the data must be those that it was trained with"
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    link: Optional[BaseException] = error
    while link is not None:
        yield link
        # fairseq raises plain exceptions for what it catches; any other is an error of its own.
        wraps = type(link) is Exception and not link.__suppress_context__
        link = link.__cause__ or (link.__context__ if wraps else None)


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
            print(f"error: {printable(line)}", file=sys.stderr)

    return hook


def _in_fairseq_command() -> bool:
    """Whether this is ``fairseq-train`` and the like, or ``python -m fairseq_cli.train``."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    name = spec.name if spec is not None else os.path.basename("".join(sys.argv[:1]))
    return name.startswith(("fairseq-", "fairseq_cli"))


# hydra shows errors in its own way, with a traceback, unless it is told to let them through.
os.environ.setdefault("HYDRA_FULL_ERROR", "1")
sys.excepthook = show_in_one_line(sys.excepthook)
