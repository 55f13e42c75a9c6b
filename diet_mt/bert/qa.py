"""Stages from files of questions to windows of subwords, a folder for each file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path

from ..corpora.binarized import read_dictionary
from ..system.engine import Preparation, Stage
from ..system.errors import UserError
from ..system.files import copy, make_folder, raw_bytes
from ..system.options import need_file
from ..system.progress import say
from . import tokenizer as tokenizers
from .answer_scores import need_rules
from .squad import Question, QuestionSource, read_squad, test_sets
from .windows import UNKNOWN, About, WindowSizes, make_features, read_about, write_features


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
    """Writes windows of questions to ``out``; ``vocab``: folder of dictionary and tokenizer."""
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
    tokenizers.say_unknown(file.name, about.unknown, len(features.tokens))
    make_folder(out)
    write_features(out, features, squad, about)
    lost_too = f", {lost} answers longer than what windows share" if lost else ""
    counts = f"{about.windows} windows, {about.with_answer} with the answer"
    say(f"{file.name}: {about.questions} questions, {counts}{lost_too}")
    return about


def read_questions(file: Path, language: str, scoring: str, need_answers: bool) -> list[Question]:
    """Questions of a file. Raises UserError if ``need_answers`` and one has none."""
    if scoring == "mlqa":
        need_rules(language)
    questions = read_squad(file)
    without = next((question for question in questions if not question.has_gold), None)
    if need_answers and without is not None:
        raise UserError(f"{file}, question {without.id}: no answers, so it cannot be trained on")
    return questions


def check_source(file: Path, out: Path) -> None:
    """Raises UserError unless the folder ``out`` was made of the content of ``file``."""
    if read_about(out).sha256 != hashlib.sha256(raw_bytes(file)).hexdigest():
        hint = "remove it, or give another --out"
        raise UserError(f"{out}: made from other content than {file}; {hint}")


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
    """``collections``: folders by the keys of ``squad.NAMES``. Raises UserError for equal files."""
    for file in (train, valid):
        need_file(file, "file; give SQuAD's JSON, plain or gzipped")
    if train.resolve() == valid.resolve():
        raise UserError(f"{valid}: in --train and in --valid; give another")
    checksum, tokenizer = tokenizers.checksum_of(vocab), tokenizers.file_of(vocab)
    sources = [
        QuestionSource("train", language, "squad", train),
        QuestionSource("valid", language, "squad", valid),
        *(source for name, folder in collections.items() for source in test_sets(name, folder)),
    ]
    stages = [
        Stage(file.name, f"from {vocab}", partial(copy, file))
        for file in (vocab / "dict.txt", tokenizer)
    ]
    for source in sources:
        if not (out / source.split).exists():
            read_questions(source.file, source.language, source.scoring, source.split == "train")
        make = partial(
            prepare,
            source.file,
            vocab,
            sizes=sizes,
            language=source.language,
            scoring=source.scoring,
            need_answers=source.split == "train",
        )
        check, does = partial(check_source, source.file), f"{source.file} in windows"
        stages.append(Stage(source.split, does, make, check=check, restarts=True))
    words = (
        f"TRAIN={train} VALID={valid} LANGUAGE={language} MAX_TOKENS={sizes.max_tokens} "
        f"STRIDE={sizes.stride} MAX_QUESTION={sizes.max_question} vocabulary={checksum}"
    )
    return Preparation(out, words, stages)
