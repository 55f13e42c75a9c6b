"""Cuts questions into windows for the model: a file of questions -> a folder (``features.py``)."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ...errors import UserError
from ...files import make_folder
from .. import tokenizer as tokenizers
from ..vocabulary import read_numbers, say_unknown
from .features import UNKNOWN, About, make_features, read_about, write_features
from .normalise import LANGUAGES
from .squad import raw_bytes, read_squad
from .windows import WindowSizes

SCORINGS = ("squad", "mlqa")


def prepare(
    file: Path,
    vocab: Path,
    out: Path,
    sizes: WindowSizes,
    *,
    language: str = "",
    scoring: str = "squad",
    need_answers: bool = False,
) -> About:
    """Makes the folder ``out`` of a file of questions.

    Args:
        vocab: Folder with ``dict.txt`` and the tokenizer that the model was pretrained with.

    Raises:
        UserError: as ``read_squad``, ``tokenizer.load`` and ``read_numbers``; the language has no
            scoring of this kind; a question to train on has no answer.
    """
    if scoring == "mlqa" and language not in LANGUAGES:
        raise UserError(
            f"{file}: language '{language}': MLQA's scores are defined for {', '.join(LANGUAGES)}"
        )
    questions = read_squad(file)
    without = next((each for each in questions if not each.has_gold), None)
    if need_answers and without is not None:
        raise UserError(f"{file}, question {without.id}: no answers, so it cannot be trained on")
    numbers = read_numbers(vocab / "dict.txt")
    features, lost = make_features(questions, tokenizers.load(vocab), numbers, sizes)
    squad = raw_bytes(file)
    about = About(
        name=file.name,
        sha256=hashlib.sha256(squad).hexdigest(),
        language=language,
        scoring=scoring,
        max_tokens=sizes.max_tokens,
        stride=sizes.stride,
        max_question=sizes.max_question,
        questions=len(questions),
        windows=len(features),
        with_answer=int((features.column("end") > 0).sum()),
        lost=lost,
        unknown=int((features.tokens == UNKNOWN).sum()),
    )
    say_unknown(file.name, about.unknown, len(features.tokens))
    make_folder(out)
    write_features(out, features, squad, about)
    return about


def check_source(out: Path, file: Path) -> None:
    """Raises UserError where the folder ``out`` was made of something else than is in ``file``."""
    if read_about(out).sha256 != hashlib.sha256(raw_bytes(file)).hexdigest():
        raise UserError(
            f"{out}: was not made of what is in {file}; remove it to make it anew, or give "
            "another --out"
        )
