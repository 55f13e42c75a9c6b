"""Question answering: a stage for each file of questions, and two for the vocabulary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from ...errors import UserError
from ...files import copy
from ...stages.engine import Preparation, Stage
from ...stages.progress import say
from ..tokenizer import file_of
from ..vocabulary import checksum_of
from .collections import TestSet, test_sets
from .prepare import check_source, prepare
from .windows import WindowSizes


def preparation(
    out: Path,
    train: Path,
    valid: Path,
    collections: Mapping[str, Path],
    vocab: Path,
    *,
    language: str = "en",
    sizes: WindowSizes | None = None,
) -> Preparation:
    """``collections``: folders of test sets, by the names in ``collections.py``.

    Raises:
        UserError: a file is not there, or both to train and to validate on; as ``test_sets``.
    """
    sizes = sizes or WindowSizes()
    for file in (train, valid):
        if not file.is_file():
            raise UserError(f"{file}: no such file; give SQuAD's JSON, plain or gzipped")
    if train.resolve() == valid.resolve():
        raise UserError(f"{valid}: in --train and in --valid; give another")
    checksum, tokenizer = checksum_of(vocab), file_of(vocab)
    files = [
        TestSet("train", language, "squad", train),
        TestSet("valid", language, "squad", valid),
        *(each for name, folder in collections.items() for each in test_sets(name, folder)),
    ]

    def stages() -> Iterator[Stage]:
        for file in (vocab / "dict.txt", tokenizer):
            yield Stage(file.name, f"from {vocab}", partial(copy, file))
        for each in files:
            make = partial(_make, each, vocab, sizes)
            check = partial(_check, each.file)
            yield Stage(each.split, f"{each.file} in windows", make, check=check, restarts=True)

    words = (
        f"TRAIN={train} VALID={valid} LANGUAGE={language} MAX_TOKENS={sizes.max_tokens} "
        f"STRIDE={sizes.stride} MAX_QUESTION={sizes.max_question} vocabulary={checksum}"
    )
    return Preparation(out, words, list(stages()))


def _check(file: Path, folder: Path) -> None:
    check_source(folder, file)


def _make(each: TestSet, vocab: Path, sizes: WindowSizes, to: Path) -> None:
    about = prepare(
        each.file,
        vocab,
        to,
        sizes,
        language=each.language,
        scoring=each.scoring,
        need_answers=each.split == "train",
    )
    lost = f", {about.lost} answers longer than what windows share" if about.lost else ""
    say(
        f"{about.name}: {about.questions} questions, {about.windows} windows, "
        f"{about.with_answer} with the answer{lost}"
    )
