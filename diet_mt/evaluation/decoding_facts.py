"""Where and by what a test set was decoded, and what from: kept beside the output, for its row."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import torch

from ..errors import UserError
from ..files import sha256, writing
from .checkpoint import device, fairseq_version, revision, today
from .generation_options import as_text


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
        device=device(shlex.join(words)),
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
