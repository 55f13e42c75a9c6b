"""What fairseq-generate printed, as sentences in the order of the corpus; and where and by what a
test set was decoded, and what from: kept beside the output, for its row.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from itertools import chain
from pathlib import Path

import torch

from ..errors import UserError
from ..files import decoded_lines, sha256, writing
from .checkpoint import device
from .generation_options import as_text
from .provenance import fairseq_version, revision, today

# The last line but one of fairseq-generate, with or without a date in front.
_SPEED = re.compile(
    r"Translated [\d,]+ sentences \([\d,]+ tokens\) in [\d.]+s "
    r"\((?P<sentences>[\d.]+) sentences/s, (?P<tokens>[\d.]+) tokens/s\)"
)


@dataclass(frozen=True)
class Decoded:
    """Best hypotheses as the model wrote them, subwords and all, and the rate of decoding."""

    hypotheses: list[str]
    sentences_per_second: float
    tokens_per_second: float


def read_decoded(output: Path, log: Path) -> Decoded:
    """Reads what fairseq-generate wrote; only the first of each n-best list counts.

    ``output``: its standard output; ``log``: its standard error. Which of them gets the log differs
    between distributions. One file for both would not do: a log line could split a hypothesis.
    Raises UserError where a file is missing, was cut off, or leaves out a sentence.
    """
    best: dict[int, str] = {}
    speed = None
    for _, line in chain(decoded_lines(log), decoded_lines(output)):
        if line.startswith("H-"):
            name, _, text = line.split("\t", 2)
            best.setdefault(int(name[2:]), text)
        elif not line.startswith(("S-", "T-", "D-", "P-", "A-")):
            speed = _SPEED.search(line) or speed
    if speed is None:
        raise UserError(f"{output}: fairseq-generate did not get to its end; run it again")
    missing = next((i for i in range(max(best, default=0) + 1) if i not in best), None)
    if missing is not None:
        raise UserError(
            f"{output}: no hypothesis for sentence {missing} (counted from 0), {len(best)} in all; "
            "decode without --skip-invalid-size-inputs-valid-test"
        )
    return Decoded(
        hypotheses=[best[i] for i in range(len(best))],
        sentences_per_second=float(speed["sentences"]),
        tokens_per_second=float(speed["tokens"]),
    )


@dataclass(frozen=True)
class Facts:
    """Where and by what, under the names of ``records.Result``."""

    options: str
    threads: int
    device: str
    date: str  # UTC
    revision: str
    fairseq: str
    torch: str


def facts_of(words: Sequence[str]) -> Facts:
    """Of a decoding that begins now, here, with these additional options."""
    return Facts(
        options=as_text(words),
        threads=torch.get_num_threads(),
        device=device(words),
        date=today(),
        revision=revision(Path(__file__).parent),
        fairseq=fairseq_version(),
        torch=metadata.version("torch"),
    )


@dataclass(frozen=True)
class Identity:
    """What was decoded, by content: the same of it gives the same output."""

    command: str
    checkpoint_sha256: str
    source_sha256: str  # of the binarized source sentences


def write_facts(path: Path, identity: Identity, facts: Facts, made: Sequence[Path]) -> None:
    """The inverse of :func:`read_facts`; ``made``: what decoding wrote, the output and the log."""
    kept = {"identity": dataclasses.asdict(identity), "facts": dataclasses.asdict(facts)}
    with writing(path) as file:
        file.write(json.dumps(kept | {"made_sha256": _sums(made)}, indent=1) + "\n")


def read_facts(path: Path, made: Sequence[Path]) -> tuple[Identity, Facts, bool]:
    """The third: whether these files still are what decoding wrote.

    Raises UserError if ``path`` is not one that :func:`write_facts` wrote.
    """
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        is_same = kept.get("made_sha256") == _sums(made)
        return Identity(**kept["identity"]), Facts(**kept["facts"]), is_same
    except (OSError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path}: does not say what was decoded where ({error}); delete it and evaluate again"
        ) from None


def _sums(files: Sequence[Path]) -> list[str]:
    return [sha256(file) for file in files if file.is_file()]
