"""Splits words into subwords: byte-pair encoding of tokens, or SentencePiece on plain text.

Two kinds, named as the recipes name them: ``bpe`` (``bpe.py``) and ``spm`` (``pieces.py``). A
folder that ``fairseq-preprocess`` made holds the model that its text was split with, under the name
of its kind: so it says how a model's output becomes text again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from ..errors import UserError
from ..files import write_lines
from ..stages.pool import in_order
from ..stages.progress import ticking
from . import bpe, moses, pieces
from .parallel import read_lines

MODELS = {"bpe": "bpe.codes", "spm": "spm.model"}
_SPLIT = {"bpe": bpe.split, "spm": pieces.split}
_JOIN = {"bpe": bpe.join, "spm": pieces.join}


def kind_of(bin_folder: Path) -> str:
    """Which subwords the data of a folder are made of: "bpe" or "spm". Raises UserError where the
    folder holds the model of neither, or of both.
    """
    found = [kind for kind, name in MODELS.items() if (bin_folder / name).exists()]
    if len(found) == 1:
        return found[0]
    names = " and ".join(MODELS.values()) if found else "neither " + " nor ".join(MODELS.values())
    raise UserError(
        f"{bin_folder}: holds {names}; it should hold the subword model that its text was split "
        "with, and no other: prepare it again (diet-mt prepare), or copy the model there"
    )


def join(tokens: str, kind: str) -> str:
    """Undoes the splitting of a line."""
    return _JOIN[kind](tokens)


def to_text(tokens: str, lang: str, kind: str) -> str:
    """The sentence for one line of a model's output; for an empty one nothing."""
    joined = join(tokens, kind)
    return moses.detokenize(joined, lang) if kind == "bpe" else joined


def from_text(lines: Sequence[str], lang: str, bin_folder: Path) -> list[str]:
    """Sentences as preparation splits them, by the model of a folder. Raises UserError as
    ``kind_of``.
    """
    kind = kind_of(bin_folder)
    plain = [moses.tokenize(line, lang) for line in lines] if kind == "bpe" else list(lines)
    return _SPLIT[kind](plain, model=bin_folder / MODELS[kind])


def split_file(kind: str, model: Path, source: Path, out: Path, workers: int) -> None:
    """Splits the words of a file."""
    split = partial(_SPLIT[kind], model=model)
    lines = chain.from_iterable(in_order(split, read_lines(source), workers))
    write_lines(out, ticking(lines, out.name))
