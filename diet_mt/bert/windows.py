"""Questions as the model reads them: overlapping windows of a context, in arrays on disk.

A context longer than the model's input is read through windows. Devlin et al. (2018),
arXiv:1810.04805, the published code: a window begins ``stride`` pieces after the one before, until
one reaches the end of the context. One folder holds one split:

    tokens.npy   int32 (N,)    the windows one after the other, as numbers of the dictionary
    extents.npy  int32 (N, 2)  begin and end in the context, in characters, of each token; -1, -1
                               for special tokens and those of the question
    windows.npy  int64 (W, 6)  of each window, see COLUMNS
    squad.json                 the questions, in their original form
    about.json                 their description, and the sizes of windows: see About
"""

from __future__ import annotations

import dataclasses
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..system.errors import UserError
from ..system.files import write_text, writing_bytes
from .settings import WindowSizes
from .squad import Question
from .tokenizer import PieceSpan, Tokenizer

BEGIN, PAD, END, UNKNOWN = 0, 1, 2, 3  # fairseq's numbers, the same in every dictionary
NOWHERE = (-1, -1)
# Of a window: its first token, its tokens, number of its question, column of its context, and
# columns of the first and the last token of the answer; 0 and 0 where it has none.
COLUMNS = ("first", "tokens", "question", "context", "start", "end")
FORMAT = 1
_ARRAYS = ("tokens", "extents", "windows")

Ints = npt.NDArray[np.integer[Any]]
Extent = tuple[int, int]  # begin and end of a piece, in characters of the context


def windows(pieces: int, room: int, stride: int) -> list[tuple[int, int]]:
    """Begin and end, in pieces of the context, of each window; together they cover it. A context
    without pieces has one empty window. ``room``: pieces in one window, at least ``stride``.
    """
    spans = [(0, min(pieces, room))]
    while spans[-1][1] < pieces:
        begin = spans[-1][0] + stride
        spans.append((begin, min(pieces, begin + room)))
    return spans


def extents_of(context: str, spans: Sequence[PieceSpan]) -> list[Extent]:
    """The extent of each piece without surrounding white space, and with the combining marks behind
    it, before which a tokenizer that removes accents ends its pieces. A piece of white space alone
    has an empty extent, behind it.
    """
    extents = []
    for number, (_, begin, end) in enumerate(spans):
        while begin < end and context[begin].isspace():
            begin += 1
        while begin < end and context[end - 1].isspace():
            end -= 1
        limit = spans[number + 1][1] if number + 1 < len(spans) else len(context)
        while begin < end < limit and unicodedata.category(context[end]).startswith("M"):
            end += 1
        extents.append((begin, end))
    return extents


def pieces_at(extents: Sequence[Extent], begin: int, end: int) -> tuple[int, int] | None:
    """First and last piece with a character in ``[begin, end)``; None without any."""
    hits = [number for number, (b, e) in enumerate(extents) if b < end and e > begin]
    return (hits[0], hits[-1]) if hits else None


def columns_in(
    span: tuple[int, int] | None, window: tuple[int, int], context_column: int
) -> tuple[int, int]:
    """Columns, within a window, of the first and the last piece of an answer, ``span``; ``window``:
    its begin and end, in pieces of the context; ``context_column``: where the context begins.

    (0, 0), which is <s>, where the window does not hold all of the answer, as in Devlin et al.'s
    code: the scores of windows are compared when they are merged, so one without the answer must
    not outscore the one with it.
    """
    if span is None or span[0] < window[0] or span[1] >= window[1]:
        return 0, 0
    shift = context_column - window[0]
    return span[0] + shift, span[1] + shift


@dataclass(frozen=True)
class About:
    """Description of a split, and the sizes of its windows."""

    name: str  # of the file of the questions
    sha256: str  # of that file, unpacked
    language: str  # en, de, ...; empty: unknown
    scoring: str  # squad, or mlqa: by the rules of the language
    max_tokens: int
    stride: int
    max_question: int
    questions: int
    windows: int
    with_answer: int  # windows with the answer to their question
    lost: int = 0  # questions whose answer no window holds as a whole
    unknown: int = 0  # tokens that the vocabulary lacks
    format: int = FORMAT

    @property
    def sizes(self) -> WindowSizes:
        return WindowSizes(self.max_tokens, self.stride, self.max_question)


@dataclass
class Features:
    """Windows of some questions; see COLUMNS and the arrays of a folder."""

    tokens: Ints
    extents: Ints
    windows: Ints

    def column(self, name: str) -> Ints:
        """(W,)"""
        return self.windows[:, COLUMNS.index(name)]

    def __len__(self) -> int:
        return len(self.windows)

    def slice_of(self, window: int) -> slice:
        """The tokens of a window."""
        first, tokens = self.windows[window, :2]
        return slice(int(first), int(first) + int(tokens))


def make_features(
    questions: Sequence[Question],
    tokenizer: Tokenizer,
    numbers: Mapping[str, int],
    sizes: WindowSizes,
) -> tuple[Features, int]:
    """Windows of questions, in order, and the number of answers that no window holds whole; of
    several gold answers, the first one is learnt. ``numbers``: piece -> number in the dictionary.
    """

    def ids_of(spans: Sequence[PieceSpan]) -> list[int]:
        return [numbers.get(piece, UNKNOWN) for piece, _, _ in spans]

    tokens: list[Ints] = []
    extents: list[Ints] = []
    rows: list[tuple[int, ...]] = []
    length = lost = 0
    # The questions of a paragraph are consecutive.
    for context, group in groupby(enumerate(questions), key=lambda pair: pair[1].context):
        spans = tokenizer.spans(context)
        ids, places = ids_of(spans), extents_of(context, spans)
        for number, question in group:
            words = ids_of(tokenizer.spans(question.text))[: sizes.max_question]
            begin = [BEGIN, *words, END, END]
            gold = question.answers[0] if question.answers else None
            span = pieces_at(places, gold.start, gold.end) if gold else None
            answered = False
            for window in windows(len(ids), sizes.room(len(words)), sizes.stride):
                inside = slice(*window)
                columns = columns_in(span, window, len(begin))
                row = [*begin, *ids[inside], END]
                rows.append((length, len(row), number, len(begin), *columns))
                tokens.append(np.asarray(row, dtype=np.int32))
                row_extents = [NOWHERE] * len(begin) + places[inside] + [NOWHERE]
                extents.append(np.asarray(row_extents, dtype=np.int32))
                length += len(row)
                answered = answered or columns != (0, 0)
            lost += gold is not None and not answered
    arrays = np.concatenate(tokens), np.concatenate(extents), np.asarray(rows, dtype=np.int64)
    return Features(*arrays), lost


def write_features(folder: Path, features: Features, squad: bytes, about: About) -> None:
    """Writes a split; ``about.json`` comes last."""
    for name in _ARRAYS:
        with writing_bytes(folder / f"{name}.npy") as file:
            np.save(file, getattr(features, name), allow_pickle=False)
    with writing_bytes(folder / "squad.json") as file:
        file.write(squad)
    write_text(folder / "about.json", json.dumps(dataclasses.asdict(about), indent=2) + "\n")


def read_about(folder: Path) -> About:
    """The description of a split. Raises UserError if this version cannot read it."""
    file = folder / "about.json"
    try:
        about = About(**json.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror}); prepare it again") from None
    except (ValueError, TypeError) as error:
        raise UserError(f"{file}: damaged ({error}); prepare it again") from None
    if about.format != FORMAT:
        raise UserError(f"{file}: format {about.format}, expected {FORMAT}; prepare it again")
    return about


def read_features(folder: Path) -> Features:
    """The arrays of a split, mapped into memory, not read. Raises UserError for damaged ones."""
    try:
        paths = (folder / f"{name}.npy" for name in _ARRAYS)
        features = Features(*(np.load(path, mmap_mode="r", allow_pickle=False) for path in paths))
        rows, count = features.windows, len(features.tokens)
        fits = features.extents.shape == (count, 2) and rows.shape[1] == len(COLUMNS)
        fits = fits and int(rows[:, 1].sum()) == count
    except (OSError, ValueError, EOFError, IndexError) as error:
        raise UserError(f"{folder}: damaged ({error}); prepare it again") from None
    if not fits:
        raise UserError(f"{folder}: arrays of different sizes; prepare it again")
    return features
