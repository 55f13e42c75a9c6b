"""Options for fairseq-generate that are given to ``scripts/evaluate.sh`` after its arguments.

What the script sets itself cannot be set there: the row would say something else than was done. All
others are part of the row and of its name.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence

from ..errors import UserError
from .checkpoint import portable

# Option that the script sets, or that would change what it reads -> what to do instead.
OWN = {
    "--beam": "set BEAM",
    "--lenpen": "set LENPEN",
    "--length-penalty": "set LENGTH_PENALTY",
    "--task": "set LENGTH_PENALTY, which chooses the task",
    "--gen-subset": "set SUBSET",
    "--path": "give the folder of the checkpoint as second argument, and set CHECKPOINT",
    "--max-tokens": "set MAX_TOKENS",
    "--source-lang": "give the checkpoint of that direction",
    "--target-lang": "give the checkpoint of that direction",
    "-s": "give the checkpoint of that direction",
    "-t": "give the checkpoint of that direction",
    "--user-dir": "the project's own is used",
    "--required-batch-size-multiple": "leave it out, all sentences are decoded",
    "--log-format": "leave it out, the log is read",
    "--log-interval": "leave it out, the log is read",
    "--quiet": "leave it out, the output is read",
    "--results-path": "leave it out, the output is kept beside the checkpoint",
    "--post-process": "leave it out, scoring joins the subwords",
    "--remove-bpe": "leave it out, scoring joins the subwords",
}


def refuse_own(words: Sequence[str]) -> None:
    """Raises UserError, naming what to do instead, for an option of OWN among ``words``.

    Also as ``--option=value``, cut short as argparse allows, and as one letter with its value.
    """
    for word in words:
        given = word.partition("=")[0]
        for own, instead in OWN.items():
            cut = len(given) > 2 and given.startswith("--") and own.startswith(given)
            glued = len(own) == 2 and word.startswith(own)
            if cut or glued:
                raise UserError(f"{given}: {instead}; no option of evaluate.sh")


def as_text(words: Sequence[str]) -> str:
    """As a row has them: without the folders of this machine."""
    return portable(shlex.join(words))


def mark_of(options: str) -> str:
    """A few letters for the name of a file; none where there are no options."""
    return hashlib.sha256(options.encode()).hexdigest()[:8] if options else ""
