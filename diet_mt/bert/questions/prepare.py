"""Cuts questions into windows for the model: a file of questions -> a folder (``features.py``), and
a stage for each such file, with two for the vocabulary.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path

from ...corpora.dictionary import read_dictionary
from ...errors import UserError
from ...files import copy, make_folder, raw_bytes
from ...stages.engine import Preparation, Stage
from ...stages.progress import say
from .. import tokenizer as tokenizers
from ..vocabulary import checksum_of, say_unknown
from .collections import QuestionSource, test_sets
from .features import UNKNOWN, About, make_features, read_about, write_features
from .normalise import need_rules
from .squad import Question, read_squad
from .windows import WindowSizes


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
    """Makes the folder ``out`` of a file of questions. Raises UserError as ``read_questions``,
    ``tokenizer.load`` and ``read_dictionary``.

    Args:
        vocab: Folder with ``dict.txt`` and the tokenizer that the model was pretrained with.
    """
    questions = read_questions(file, language, scoring, need_answers)
    numbers = read_dictionary(vocab / "dict.txt")
    features, lost = make_features(questions, tokenizers.load(vocab), numbers, sizes)
    squad = raw_bytes(file)
    about = About(
        name=file.name,
        sha256=hashlib.sha256(squad).hexdigest(),
        language=language,
        scoring=scoring,
        **asdict(sizes),
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


def read_questions(file: Path, language: str, scoring: str, need_answers: bool) -> list[Question]:
    """Raises UserError as ``read_squad``, and where the language has no scoring of this kind, or a
    question to train on has no answer.
    """
    if scoring == "mlqa":
        need_rules(language)
    questions = read_squad(file)
    without = next((each for each in questions if not each.has_gold), None)
    if need_answers and without is not None:
        raise UserError(f"{file}, question {without.id}: no answers, so it cannot be trained on")
    return questions


def check_source(file: Path, out: Path) -> None:
    """Raises UserError where the folder ``out`` was made of something else than is in ``file``."""
    if read_about(out).sha256 != hashlib.sha256(raw_bytes(file)).hexdigest():
        raise UserError(
            f"{out}: was not made of what is in {file}; remove it to make it anew, or give "
            "another --out"
        )


def preparation(
    out: Path,
    train: Path,
    valid: Path,
    collections: Mapping[str, Path],
    vocab: Path,
    *,
    language: str,
    sizes: WindowSizes,
) -> Preparation:
    """``collections``: folders of test sets, by the names in ``collections.py``. Raises UserError
    where a file is not there, or both to train and to validate on; as ``test_sets``, and as
    ``read_questions`` of all that is still to be made.
    """
    for file in (train, valid):
        if not file.is_file():
            raise UserError(f"{file}: no such file; give SQuAD's JSON, plain or gzipped")
    if train.resolve() == valid.resolve():
        raise UserError(f"{valid}: in --train and in --valid; give another")
    checksum, tokenizer = checksum_of(vocab), tokenizers.file_of(vocab)
    files = [
        QuestionSource("train", language, "squad", train),
        QuestionSource("valid", language, "squad", valid),
        *(each for name, folder in collections.items() for each in test_sets(name, folder)),
    ]
    stages = [
        Stage(file.name, f"from {vocab}", partial(copy, file))
        for file in (vocab / "dict.txt", tokenizer)
    ]
    for each in files:
        if not (out / each.split).exists():
            read_questions(each.file, each.language, each.scoring, each.split == "train")
        make, check = partial(_make, each, vocab, sizes), partial(check_source, each.file)
        does = f"{each.file} in windows"
        stages.append(Stage(each.split, does, make, check=check, restarts=True))
    words = (
        f"TRAIN={train} VALID={valid} LANGUAGE={language} MAX_TOKENS={sizes.max_tokens} "
        f"STRIDE={sizes.stride} MAX_QUESTION={sizes.max_question} vocabulary={checksum}"
    )
    return Preparation(out, words, stages)


def _make(each: QuestionSource, vocab: Path, sizes: WindowSizes, to: Path) -> None:
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
