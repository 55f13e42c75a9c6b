"""The test sets of XTREME's question answering, found by the names of their official files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ...errors import UserError


@dataclass(frozen=True)
class QuestionSource:
    """One file of questions, all in one language."""

    split: str  # test_xquad_de
    language: str  # de
    scoring: str  # of SCORINGS
    file: Path


# Collection -> how its files are named, plain or gzipped; the group is the language of context and
# question (MLQA also has files where they differ, which the paper does not report).
_FILES = {
    "xquad": r"xquad\.([a-z]{2})\.json",
    "mlqa": r"test-context-([a-z]{2})-question-\1\.json",
    "tydiqa": r"(?:tydiqa\.(?:goldp\.)?([a-z]{2})\.dev|([a-z]+)\.dev|"
    r"tydiqa-goldp-dev-([a-z]+))\.json",
}
# The names of the collections in results.
NAMES = {"xquad": "XQuAD", "mlqa": "MLQA", "tydiqa": "TyDiQA-GoldP"}
SCORINGS = ("squad", "mlqa")
# TyDi QA writes languages out.
_CODES = {
    "arabic": "ar", "bengali": "bn", "english": "en", "finnish": "fi", "indonesian": "id",
    "korean": "ko", "russian": "ru", "swahili": "sw", "telugu": "te",
}  # fmt: skip


def test_sets(collection: str, folder: Path) -> list[QuestionSource]:
    """The test sets of one collection that are in a folder, by language. Raises UserError where
    there is none, two are of one language, or a language has no code.
    """
    pattern = re.compile(rf"{_FILES[collection]}(?:\.gz)?")
    found: dict[str, QuestionSource] = {}
    for file in sorted(folder.iterdir()) if folder.is_dir() else []:
        match = pattern.fullmatch(file.name)
        if match is None:
            continue
        name = next(group for group in match.groups() if group)
        language = _CODES.get(name, name)
        if len(language) != 2:
            raise UserError(f"{file}: '{name}' is no language of TyDi QA; remove or rename it")
        if language in found:
            raise UserError(f"{file} and {found[language].file}: both are {language}; remove one")
        scoring = "mlqa" if collection == "mlqa" else "squad"
        found[language] = QuestionSource(f"test_{collection}_{language}", language, scoring, file)
    if not found:
        raise UserError(f"{folder}: no file is named as {collection} names its test sets")
    return [found[language] for language in sorted(found)]
