"""How ``diet-mt evaluate`` decodes, options of fairseq-generate that are given beside its own among
it.

What the command sets itself cannot be set there: the row would say something else than was done.
All others are part of the row and of its name.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..errors import UserError
from .commands import portable
from .fairseq_options import read_options

_LANGUAGE = "give the checkpoint of that direction"
_READ = "leave it out, the output is read"
_JOINED = "leave it out, scoring joins the subwords"
# Option that the command sets, or that would change what it reads -> what to do instead.
REFUSED = {
    "--task": "give --length-penalty, which chooses the task",
    "--gen-subset": "give --subset",
    "--path": "give the folder of the checkpoint as second argument, and --checkpoint",
    "--source-lang": _LANGUAGE,
    "--target-lang": _LANGUAGE,
    "-s": _LANGUAGE,
    "-t": _LANGUAGE,
    "--user-dir": "leave it out, the project's own is used",
    "--required-batch-size-multiple": "leave it out, rates are of the same batches for all rows",
    "--log-format": _READ,
    "--log-interval": _READ,
    "--quiet": _READ,
    "--results-path": "leave it out, the output is kept beside the checkpoint",
    "--post-process": _JOINED,
    "--remove-bpe": _JOINED,
}


@dataclass(frozen=True)
class Search:
    """How to decode. Scores are divided by length^lenpen or, with ``gnmt``, as in the paper, by
    ((5 + length) / 6)^lenpen.
    """

    beam: int
    lenpen: float
    length_penalty: str
    max_tokens: int  # source tokens of a batch
    lenpens: tuple[float, ...]  # of which the validation set chooses the lenpen
    tried: str = ""  # "0:33.1 0.6:34.0": what it has chosen from, with its BLEU
    options: list[str] = field(default_factory=list)  # more of fairseq-generate's

    @property
    def mark(self) -> str:
        """A few letters for the name of a file; none where there are no more options."""
        text = as_text(self.options)
        return hashlib.sha256(text.encode()).hexdigest()[:8] if text else ""


def check_options(words: Sequence[str], own: Iterable[str] = ()) -> None:
    """Raises UserError for an option that is not the user's to set, or that does not exist.

    ``own``: options of the command that the user gave them to, for the nearest name.
    """
    for word in words:
        given = word.partition("=")[0]
        name = given if given.startswith("--") else given[:2]
        if name in REFUSED:
            raise UserError(f"{name}: {REFUSED[name]}")
    from fairseq.options import get_generation_parser

    read_options(get_generation_parser(), ["data", *words], own)


def as_text(words: Sequence[str]) -> str:
    """As a row has them: without the folders of this machine."""
    return portable(shlex.join(words))
