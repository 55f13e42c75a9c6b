"""Questions as the model reads them, in arrays that load without being parsed.

One folder holds one split:

    tokens.npy   int32 (N,)    the windows one after the other, as numbers of the dictionary
    extents.npy  int32 (N, 2)  begin and end in the context, in characters, of each token; -1, -1
                               for special tokens and those of the question
    windows.npy  int64 (W, 6)  of each window, see COLUMNS
    squad.json                 the questions, as they were given
    about.json                 what they are, and how they were cut: see About
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import UserError
from ...files import writing, writing_bytes
from ..tokenizer import Span, Tokenizer
from .spans import columns_in, extents_of, pieces_at
from .squad import Question
from .windows import SPECIAL, WindowSizes, windows

BEGIN, PAD, END, UNKNOWN = 0, 1, 2, 3  # fairseq's numbers, the same in every dictionary
NOWHERE = (-1, -1)
# Of a window: its first token, its tokens, number of its question, where its context begins in it,
# and first and last token of the answer, also from its begin; 0 and 0 where there is none.
COLUMNS = ("first", "tokens", "question", "context", "start", "end")
FORMAT = 1

Ints = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class About:
    """What a split is, and how it was cut."""

    name: str  # of the file that the questions are from
    sha256: str  # of that file, unpacked
    language: str  # en, de, ...; empty: not said
    scoring: str  # squad, or mlqa: by the rules of the language
    max_tokens: int
    stride: int
    max_question: int
    questions: int
    windows: int
    with_answer: int  # windows that hold the answer to their question
    lost: int = 0  # questions whose answer no window holds as a whole
    unknown: int = 0  # tokens of the windows that the vocabulary lacks
    format: int = FORMAT

    @property
    def sizes(self) -> WindowSizes:
        return WindowSizes(self.max_tokens, self.stride, self.max_question)


@dataclass
class Features:
    """Windows of some questions, as COLUMNS and the arrays of this file say."""

    tokens: Ints
    extents: Ints
    windows: Ints

    def column(self, name: str) -> Ints:
        """(W,)"""
        return self.windows[:, COLUMNS.index(name)]

    def __len__(self) -> int:
        return len(self.windows)

    def slice_of(self, window: int) -> slice:
        """Where the tokens of a window are."""
        first, tokens = self.windows[window, :2]
        return slice(int(first), int(first) + int(tokens))


def make_features(
    questions: Sequence[Question],
    tokenizer: Tokenizer,
    numbers: Mapping[str, int],
    sizes: WindowSizes,
) -> tuple[Features, int]:
    """Windows of all questions, in order, and how many answers no window holds as a whole.

    There is at least one question. The first one of several gold answers is that to learn.

    Args:
        numbers: of pieces.
    """

    def ids_of(spans: Sequence[Span]) -> list[int]:
        return [numbers.get(piece, UNKNOWN) for piece, _, _ in spans]

    tokens: list[Ints] = []
    extents: list[Ints] = []
    rows: list[tuple[int, ...]] = []
    length = lost = 0
    # The questions of a paragraph stand together.
    for context, asked in groupby(enumerate(questions), key=lambda each: each[1].context):
        spans = tokenizer.spans(context)
        ids, places = ids_of(spans), extents_of(context, spans)
        for number, question in asked:
            words = ids_of(tokenizer.spans(question.text))[: sizes.max_question]
            begin = [BEGIN, *words, END, END]
            gold = question.answers[0] if question.answers else None
            span = pieces_at(places, gold.start, gold.end) if gold else None
            found = False
            for window in windows(len(ids), sizes.room(len(words)), sizes.stride):
                inside = slice(*window)
                columns = columns_in(span, window, len(begin))
                read = [*begin, *ids[inside], END]
                their = [NOWHERE] * len(begin) + places[inside] + [NOWHERE]
                rows.append((length, len(read), number, len(begin), *columns))
                tokens.append(np.asarray(read, dtype=np.int32))
                extents.append(np.asarray(their, dtype=np.int32))
                length += len(read)
                found = found or columns != (0, 0)
            lost += gold is not None and not found
    assert all(row[1] <= sizes.max_tokens and row[3] >= SPECIAL - 1 for row in rows)
    features = Features(
        np.concatenate(tokens),
        np.concatenate(extents),
        np.asarray(rows, dtype=np.int64),
    )
    return features, lost


def write_features(folder: Path, features: Features, squad: bytes, about: About) -> None:
    """Writes a split; ``about.json`` comes last."""
    for name in ("tokens", "extents", "windows"):
        with writing_bytes(folder / f"{name}.npy") as file:
            np.save(file, getattr(features, name), allow_pickle=False)
    with writing_bytes(folder / "squad.json") as file:
        file.write(squad)
    with writing(folder / "about.json") as text:
        json.dump(dataclasses.asdict(about), text, indent=2)
        text.write("\n")


def read_about(folder: Path) -> About:
    """Raises UserError where ``folder`` holds no split that this version can read."""
    file = folder / "about.json"
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        if found["format"] != FORMAT:
            raise UserError(
                f"{file}: format {found['format']}, expected {FORMAT}; prepare it again"
            )
        return About(**found)
    except OSError as error:
        raise UserError(
            f"{file}: cannot be read ({error.strerror}); make it with diet-mt prepare qa"
        ) from None
    except (ValueError, TypeError, KeyError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{file}: damaged ({error}); prepare it again") from None


def read_features(folder: Path) -> Features:
    """The arrays of a split, mapped into memory, not read. Raises UserError where one is missing,
    or they do not fit each other.
    """
    load = partial(np.load, mmap_mode="r", allow_pickle=False)
    try:
        features = Features(
            *(load(folder / f"{name}.npy") for name in ("tokens", "extents", "windows"))
        )
        rows, count = features.windows, len(features.tokens)
        fits = features.extents.shape == (count, 2) and rows.shape[1] == len(COLUMNS)
        fits = fits and int(rows[:, 1].sum()) == count
    except (OSError, ValueError, EOFError, IndexError) as error:
        raise UserError(f"{folder}: damaged ({error}); prepare it again") from None
    if not fits:
        raise UserError(f"{folder}: its arrays do not fit each other; prepare it again")
    return features
