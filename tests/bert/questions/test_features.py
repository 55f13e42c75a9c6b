"""Windows hold what they should: tokens, places, answers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from diet_mt.bert.questions.features import (
    COLUMNS,
    Features,
    make_features,
    read_about,
    read_features,
)
from diet_mt.bert.questions.squad import Question, read_squad
from diet_mt.bert.questions.windows import WindowSizes
from diet_mt.bert.tokenizer import Tokenizer, load
from diet_mt.corpora.dictionary import read_dictionary
from diet_mt.errors import UserError

from ..tokenizers_made import KINDS
from .made_up import coloured, question, write_vocabulary

SIZES = WindowSizes(max_tokens=40, stride=12, max_question=9)


@pytest.fixture(scope="module", params=KINDS)
def vocab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_vocabulary(tmp_path_factory.mktemp("features") / "vocab", request.param)


@pytest.fixture(scope="module")
def tokens(vocab: Path) -> Tokenizer:
    return load(vocab)


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> list[Question]:
    return read_squad(coloured(tmp_path_factory.mktemp("asked") / "q.json", 25, seed=5))


def rows(features: Features) -> list[dict[str, int]]:
    return [dict(zip(COLUMNS, row, strict=True)) for row in features.windows.tolist()]


def test_windows_of_made_up_questions(
    vocab: Path, tokens: Tokenizer, questions: list[Question]
) -> None:
    numbers = read_dictionary(vocab / "dict.txt")
    features, lost = make_features(questions, tokens, numbers, SIZES)
    assert lost == 0
    seen: dict[int, set[tuple[int, int]]] = {}
    answered = set()
    for window, row in enumerate(rows(features)):
        asked = questions[row["question"]]
        found = features.tokens[features.slice_of(window)].tolist()
        places = features.extents[features.slice_of(window)].tolist()
        context = row["context"]
        words = [numbers.get(piece, 3) for piece in tokens.pieces(asked.text)][:9]
        assert found[:context] == [0, *words, 2, 2]
        assert found[-1] == 2
        assert len(found) == row["tokens"] <= 40
        assert places[:context] == [[-1, -1]] * context
        assert places[-1] == [-1, -1]
        seen.setdefault(row["question"], set()).update(map(tuple, places[context:-1]))
        if row["end"]:
            assert context <= row["start"] <= row["end"] < row["tokens"] - 1
            text = asked.context[places[row["start"]][0] : places[row["end"]][1]]
            assert text == asked.answers[0].text
            answered.add(row["question"])
        else:
            assert row["start"] == 0
            begin, end = asked.answers[0].start, asked.answers[0].end
            inside = [place for place in places[context:-1] if place[0] < end and place[1] > begin]
            # At most a part of the answer.
            assert not inside or inside[0][0] > begin or inside[-1][1] < end
    assert answered == set(range(len(questions)))
    for number, asked in enumerate(questions):
        every = {(begin, end) for _, begin, end in tokens.spans(asked.context)}
        assert seen[number] == every


def test_an_answer_longer_than_any_window_is_counted(tokens: Tokenizer) -> None:
    long = " ".join(["the old woman"] * 30)
    features, lost = make_features([question(long, long)], tokens, {}, SIZES)
    assert lost == 1
    assert not features.column("end").any()


def test_several_answers_and_none(tokens: Tokenizer) -> None:
    context = "the old woman reads"
    asked = [question(context, "reads", "old"), question(context, impossible=True)]
    features, lost = make_features(asked, tokens, {}, SIZES)
    assert lost == 0
    first, second = rows(features)
    extents = features.extents[features.slice_of(0)]
    assert context[extents[first["start"]][0] : extents[first["end"]][1]] == "reads"
    assert (second["start"], second["end"]) == (0, 0)


def test_damaged_folders_are_refused(tmp_path: Path) -> None:
    from diet_mt.bert.questions.prepare import prepare

    vocab = write_vocabulary(tmp_path / "vocab")
    file = coloured(tmp_path / "q.json", 3, seed=5)
    folder = tmp_path / "made"
    about = prepare(file, vocab, folder, SIZES, language="en")
    assert read_about(folder) == about
    assert about.questions == 3
    assert len(read_features(folder)) == about.windows
    assert read_squad(folder / "squad.json") == read_squad(file)
    tokens = np.load(folder / "tokens.npy")
    np.save(folder / "tokens.npy", tokens[:-1])
    with pytest.raises(UserError, match="do not fit each other"):
        read_features(folder)
    (folder / "tokens.npy").write_bytes(b"nonsense")
    with pytest.raises(UserError, match="damaged"):
        read_features(folder)
    content = json.loads((folder / "about.json").read_text())
    for wrong, complaint in (
        ("{", "damaged"),
        (json.dumps({**content, "format": 99}), "format 99, expected 1"),
        (json.dumps({**content, "more": 1}), "damaged"),
    ):
        (folder / "about.json").write_text(wrong)
        with pytest.raises(UserError, match=complaint):
            read_about(folder)
    (folder / "about.json").unlink()
    with pytest.raises(UserError, match="diet-mt prepare qa"):
        read_about(folder)
