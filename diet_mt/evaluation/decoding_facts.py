"""What ``scripts/evaluate.sh`` has to know before it decodes, on four lines.

    python -m diet_mt.evaluation.decoding_facts --subset '' BIN CHECKPOINT [options for fairseq-generate]

The part of the data to decode; the options that give the direction of the checkpoint, if the data
folder has the pair the other way round (``-s de -t en``); what the given options add to the names
of files; and what is true of this decoding alone, as JSON, to be kept beside it for its row.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import torch

from ..command_line import run
from ..errors import UserError
from .checkpoint import device, direction_of, fairseq_version, language_pair, revision, today
from .generation_options import as_text, mark_of, refuse_own


@dataclass(frozen=True)
class Facts:
    """Where and by what a test set was decoded, under the names of ``records.Result``."""

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


def read_facts(path: Path) -> Facts:
    """Raises UserError if the file is not one that this command's last line was written to."""
    try:
        return Facts(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError) as error:
        raise UserError(
            f"{path}: does not say where this was decoded ({error}); delete it and evaluate again"
        ) from None


def subset_of(data: Path, pair: tuple[str, str]) -> str:
    """The test set for a checkpoint of the direction ``pair``.

    SacreBLEU's sets need not hold the same text in both directions. Where they do not, preparation
    keeps that of the reverse direction as ``test1``, and a score on the other one would not be that
    of the test set that the row names.
    """
    is_reverse = pair != language_pair(data, "test")
    return "test1" if is_reverse and any(data.glob("test1.*")) else "test"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="diet_mt.evaluation.decoding_facts", description="before decoding"
    )
    parser.add_argument("--subset", default="", help="part of the data (default: the test set)")
    parser.add_argument("data", type=Path, help="folder made by fairseq-preprocess")
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("options", nargs=argparse.REMAINDER, help="for fairseq-generate")
    args = parser.parse_args(argv)
    logging.getLogger("fairseq").setLevel(logging.WARNING)

    def body() -> None:
        refuse_own(args.options)
        pair = direction_of(args.checkpoint, args.data, args.subset or "test")
        subset = args.subset or subset_of(args.data, pair)
        is_own = pair == language_pair(args.data, subset)
        facts = facts_of(args.options)
        mark = mark_of(facts.options)
        print(subset)
        print("" if is_own else f"-s {pair[0]} -t {pair[1]}")
        print(f".options-{mark}" if mark else "")
        print(json.dumps(dataclasses.asdict(facts)))

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
