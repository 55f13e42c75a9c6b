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
from ..files import writing
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


def write_facts(path: Path, identity: Identity, facts: Facts) -> None:
    """The inverse of :func:`read_facts`."""
    both = {"identity": dataclasses.asdict(identity), "facts": dataclasses.asdict(facts)}
    with writing(path) as file:
        file.write(json.dumps(both, indent=1) + "\n")


def read_facts(path: Path) -> tuple[Identity, Facts]:
    """Raises UserError if the file is not one that :func:`write_facts` wrote."""
    try:
        both = json.loads(path.read_text(encoding="utf-8"))
        return Identity(**both["identity"]), Facts(**both["facts"])
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path}: does not say what was decoded where ({error}); delete it and evaluate again"
        ) from None
