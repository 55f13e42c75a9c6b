"""Questions in SQuAD's JSON: SQuAD 1.1 and 2.0, XQuAD, MLQA and TyDiQA-GoldP.

All of them hold ``data``, a list of articles with ``paragraphs``, each of which is a ``context``
and its questions, ``qas``. Rajpurkar et al. (2016), arXiv:1606.05250; Rajpurkar et al. (2018),
arXiv:1806.03822, for ``is_impossible``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import UserError
from ...files import raw_bytes


@dataclass(frozen=True)
class Answer:
    """``text`` stands in the context from character ``start`` on."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """The character after its last one."""
        return self.start + len(self.text)


@dataclass(frozen=True)
class Question:
    """One question about one context. Without answers it is impossible, or has no gold answers."""

    id: str
    text: str
    context: str
    answers: tuple[Answer, ...] = ()
    impossible: bool = False  # the context does not answer it, and that is known

    @property
    def has_gold(self) -> bool:
        """Whether there is something to compare a prediction with."""
        return self.impossible or bool(self.answers)

    @property
    def golds(self) -> list[str]:
        """The texts of the answers; one empty text if it is impossible."""
        return [answer.text for answer in self.answers] or [""]


def read_squad(path: Path) -> list[Question]:
    """All questions of a file, plain or gzipped, in order.

    Raises:
        UserError: the file is missing, not JSON or not of this layout; two questions have one id;
            an answer is not where its offset says. The message names the file, and the question
            where there is one.
    """
    questions = list(_questions(read_json(path), str(path)))
    if not questions:
        raise UserError(f"{path}: no questions")
    seen: set[str] = set()
    for question in questions:
        if question.id in seen:
            raise UserError(f"{path}, question {question.id}: there are two with this id")
        seen.add(question.id)
    return questions


def read_json(path: Path) -> Any:
    """What is in a file of JSON, plain or gzipped. Raises UserError where it is none."""
    content = raw_bytes(path)
    try:
        return json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not valid UTF-8 (byte {error.start}); convert it") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON ({error}); it may be incomplete, get it again") from None


def _questions(content: Any, file: str) -> Iterator[Question]:
    for number, article in enumerate(_list(content, "data", file), start=1):
        where = f"{file}, article {number}"
        for place, paragraph in enumerate(_list(article, "paragraphs", where), start=1):
            here = f"{where}, paragraph {place}"
            context = _text(paragraph, "context", here)
            for entry in _list(paragraph, "qas", here):
                yield _question(entry, context, file, here)


def _question(entry: Any, context: str, file: str, here: str) -> Question:
    name = entry.get("id") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name:
        raise UserError(f"{here}: a question without an 'id'; give every question one")
    _text(entry, "id", here)
    where = f"{file}, question {name}"
    text = _text(entry, "question", where)
    impossible = entry.get("is_impossible", False)
    if not isinstance(impossible, bool):
        raise UserError(f"{where}: 'is_impossible' is {impossible!r}, expected true or false")
    entries = _list(entry, "answers", where) if "answers" in entry else []
    answers = tuple(_answer(each, context, where) for each in entries)
    if impossible and answers:
        raise UserError(f"{where}: 'is_impossible' is true, but it has answers")
    return Question(name, text, context, answers, impossible)


def _answer(entry: Any, context: str, where: str) -> Answer:
    text = _text(entry, "text", where)
    start = entry.get("answer_start")
    if not isinstance(start, int) or isinstance(start, bool):
        raise UserError(f"{where}: 'answer_start' is {start!r}, expected a number of characters")
    if start < 0 or context[start : start + len(text)] != text:
        raise UserError(
            f"{where}: answer {text!r} does not stand at character {start} of its context; "
            "offsets count characters (code points), not bytes"
        )
    return Answer(text, start)


def _list(holder: Any, key: str, where: str) -> list[Any]:
    value = holder.get(key) if isinstance(holder, dict) else None
    if not isinstance(value, list):
        raise UserError(f"{where}: no list '{key}'; is this SQuAD's JSON?")
    return value


def _text(holder: Any, key: str, where: str) -> str:
    value = holder.get(key) if isinstance(holder, dict) else None
    if not isinstance(value, str) or not value.strip():
        raise UserError(f"{where}: '{key}' is {value!r}, expected some text")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UserError(
            f"{where}: '{key}' has half of a character (a lone surrogate) at {error.start}; mend it"
        ) from None
    return value
