"""Questions in SQuAD's JSON: SQuAD 1.1 and 2.0, XQuAD, MLQA and TyDiQA-GoldP.

A file holds ``data``, a list of articles with ``paragraphs``, each of which has a ``context`` and
its questions, ``qas`` (Rajpurkar et al. 2016, arXiv:1606.05250). ``is_impossible``: Rajpurkar et
al. (2018), arXiv:1806.03822.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..system.errors import UserError
from ..system.files import raw_bytes

# TyDi QA names languages in full.
_CODES = {
    "arabic": "ar", "bengali": "bn", "english": "en", "finnish": "fi", "indonesian": "id",
    "korean": "ko", "russian": "ru", "swahili": "sw", "telugu": "te",
}  # fmt: skip
# Collection -> the names of its files; the group is the language of both context and question.
# MLQA also has files where the two differ, whose scores Chen et al. (2021) do not report.
_FILES = {
    "xquad": r"xquad\.([a-z]{2})\.json",
    "mlqa": r"test-context-([a-z]{2})-question-\1\.json",
    "tydiqa": rf"(?:tydiqa\.(?:goldp\.)?([a-z]{{2}})\.dev|({'|'.join(_CODES)})\.dev|"
    rf"tydiqa-goldp-dev-({'|'.join(_CODES)}))\.json",
}
# The names of the collections in results.
NAMES = {"xquad": "XQuAD", "mlqa": "MLQA", "tydiqa": "TyDiQA-GoldP"}
SCORINGS = ("squad", "mlqa")
_HALF = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class GoldAnswer:
    """``text`` at character ``start`` of the context."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """Index of the character after the answer."""
        return self.start + len(self.text)


@dataclass(frozen=True)
class Question:
    """A question about a context. No answers: it is impossible, or they are not published."""

    id: str
    text: str
    context: str
    answers: tuple[GoldAnswer, ...] = ()
    impossible: bool = False  # marked as not answered by the context

    @property
    def has_gold(self) -> bool:
        """Whether predictions can be scored."""
        return self.impossible or bool(self.answers)

    @property
    def golds(self) -> list[str]:
        """The texts of the answers; one empty text if there are none."""
        return [answer.text for answer in self.answers] or [""]


@dataclass(frozen=True)
class QuestionSource:
    """One file of questions, all in one language."""

    split: str  # test_xquad_de
    language: str  # de
    scoring: str  # of SCORINGS
    file: Path


def test_sets(collection: str, folder: Path) -> list[QuestionSource]:
    """The test sets of a collection in a folder, sorted by language. Raises UserError if there is
    none, and for two of one language.
    """
    pattern = re.compile(rf"{_FILES[collection]}(?:\.gz)?")
    sources: dict[str, QuestionSource] = {}
    for file in sorted(folder.iterdir()) if folder.is_dir() else []:
        match = pattern.fullmatch(file.name)
        if match is None:
            continue
        name = next(group for group in match.groups() if group)
        language = _CODES.get(name, name)
        if language in sources:
            raise UserError(f"{file} and {sources[language].file}: both are {language}; remove one")
        scoring = "mlqa" if collection == "mlqa" else "squad"
        sources[language] = QuestionSource(f"test_{collection}_{language}", language, scoring, file)
    if not sources:
        raise UserError(f"{folder}: no file has the name of a test set of {collection}")
    return [sources[language] for language in sorted(sources)]


def read_squad(path: Path) -> list[Question]:
    """All questions of a file, plain or gzipped, in order. Raises UserError for no questions, a
    repeated id, and invalid JSON or fields.
    """
    questions: dict[str, Question] = {}
    for question in _questions(read_json(path), str(path)):
        if questions.setdefault(question.id, question) is not question:
            raise UserError(f"{path}, question {question.id}: duplicate id")
    if not questions:
        raise UserError(f"{path}: no questions")
    return list(questions.values())


def read_json(path: Path) -> Any:
    """The content of a JSON file, plain or gzipped. Raises UserError for invalid JSON or UTF-8."""
    content = raw_bytes(path)
    try:
        return json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not valid UTF-8 (byte {error.start}); convert it") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON ({error}); it may be incomplete, get it again") from None


def _questions(content: Any, file: str) -> Iterator[Question]:
    for number, article in enumerate(_field(content, "data", list, file), start=1):
        where = f"{file}, article {number}"
        for place, paragraph in enumerate(_field(article, "paragraphs", list, where), start=1):
            here = f"{where}, paragraph {place}"
            context = _field(paragraph, "context", str, here)
            for entry in _field(paragraph, "qas", list, here):
                name = _field(entry, "id", str, here)
                yield _question(entry, name, context, f"{file}, question {name}")


def _question(entry: dict[str, Any], name: str, context: str, where: str) -> Question:
    text = _field(entry, "question", str, where)
    impossible = _field({"is_impossible": False} | entry, "is_impossible", bool, where)
    entries = _field({"answers": []} | entry, "answers", list, where)
    answers = tuple(_answer(answer, context, where) for answer in entries)
    if impossible and answers:
        raise UserError(f"{where}: 'is_impossible' is true, but it has answers")
    return Question(name, text, context, answers, impossible)


def _answer(entry: Any, context: str, where: str) -> GoldAnswer:
    text, start = _field(entry, "text", str, where), _field(entry, "answer_start", int, where)
    if start < 0 or context[start : start + len(text)] != text:
        hint = "offsets count characters (code points)"
        raise UserError(f"{where}: answer {text!r} is not at {start} of its context; {hint}")
    return GoldAnswer(text, start)


def _field(holder: Any, key: str, kind: type, where: str) -> Any:
    """A field of the given type. Raises UserError also for empty text and lone surrogates."""
    value: Any = holder.get(key) if isinstance(holder, dict) else None
    fault = "" if type(value) is kind else f"expected a {kind.__name__} as in SQuAD's JSON"
    if kind is str and not fault:
        fault = "" if value.strip() else "expected some text"
        fault = "half of a character (a lone surrogate)" if _HALF.search(value) else fault
    if fault:
        raise UserError(f"{where}: '{key}' is {value!r}; {fault}")
    return value
