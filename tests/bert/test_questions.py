"""Questions are read strictly, cut into windows with their answers, and kept in folders."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diet_mt.bert import qa
from diet_mt.bert.squad import GoldAnswer, Question, QuestionSource, read_squad
from diet_mt.bert.squad import test_sets as sets_of
from diet_mt.bert.tokenizer import Tokenizer, WordPiece, load
from diet_mt.bert.windows import (
    COLUMNS,
    Features,
    WindowSizes,
    columns_in,
    extents_of,
    make_features,
    pieces_at,
    read_about,
    read_features,
    windows,
)
from diet_mt.corpora.binarized import read_dictionary
from diet_mt.system.errors import UserError

from .made import KINDS, article, coloured, entry, question, write_squad, write_vocabulary

CONTEXT = "Der Fluss fließt 😀 nach Süden, nach Süden."
SIZES = WindowSizes(max_tokens=40, stride=12, max_question=9)


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("vocabularies")
    return {kind: write_vocabulary(folder / kind, kind) for kind in KINDS}


@pytest.fixture(params=KINDS)
def vocab(request: pytest.FixtureRequest, vocabularies: dict[str, Path]) -> Path:
    return vocabularies[request.param]


@pytest.fixture
def tokens(vocab: Path) -> Tokenizer:
    return load(vocab)


def test_the_content_of_a_file(tmp_path: Path) -> None:
    one = entry("a", " wohin? ", CONTEXT, "nach Süden", "Süden")
    never = entry("b", "wann?", CONTEXT, is_impossible=True)
    unlabelled = {"id": "c", "question": "warum?"}
    path = write_squad(tmp_path / "q.json", article(CONTEXT, one, never), article("x", unlabelled))
    first, second, third = read_squad(path)
    assert (first.id, first.text, first.context) == ("a", " wohin? ", CONTEXT)
    # Characters are counted, not bytes and not halves of characters.
    assert first.answers == (GoldAnswer("nach Süden", 19), GoldAnswer("Süden", 24))
    assert first.answers[0].end == 29
    assert first.golds == ["nach Süden", "Süden"]
    assert (second.impossible, second.golds, second.has_gold) == (True, [""], True)
    assert (third.answers, third.impossible, third.has_gold) == ((), False, False)
    packed = tmp_path / "q.json.gz"
    for mark in (b"", b"\xef\xbb\xbf"):
        packed.write_bytes(gzip.compress(mark + path.read_bytes()))
        assert read_squad(packed) == [first, second, third]


def _wrong(**changes: Any) -> dict[str, Any]:
    return {"data": [article("one two", {**entry("q7", "?", "one two", "two"), **changes})]}


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ({}, "'data'"),
        ({"data": []}, ": no questions"),
        ({"data": [{"paragraphs": [{"qas": []}]}]}, "paragraph 1: 'context'"),
        ({"data": [{"paragraphs": [{"context": "a", "qas": [{}]}]}]}, "paragraph 1: 'id'"),
        (_wrong(answers=[{"text": "two"}]), "q7: 'answer_start'"),
        (_wrong(answers=[{"text": "two", "answer_start": 3}]), "q7: answer 'two' .* 3"),
        (_wrong(answers=[{"text": " ", "answer_start": 3}]), "q7: 'text'"),
        (_wrong(is_impossible=True), "q7: 'is_impossible'"),
        (_wrong(question="\ud800?"), "q7: 'question'"),
        ({"data": _wrong()["data"] * 2}, "question q7"),
        (b'{"data": [', "JSON"),
        (b'{"data": "\xff"}', "byte 10"),
        (gzip.compress(b'{"data": []}', mtime=0)[:20], "cannot be read"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, content: Any, named: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    with pytest.raises(UserError, match=f"^{path}.*{named}"):
        read_squad(path)


def test_test_sets_by_their_official_names(tmp_path: Path) -> None:
    files = {
        "xquad": "xquad.zh.json.gz xquad.de.json README.md",
        "mlqa": "test-context-de-question-de.json test-context-de-question-en.json "
        "dev-context-de-question-de.json",
        "tydiqa": "swahili.dev.json.gz korean.train.json tydiqa.fi.dev.json "
        "tydiqa-goldp-dev-russian.json tydiqa-goldp-train-english.json klingon.dev.json",
    }
    for folder, names in files.items():
        (tmp_path / folder).mkdir()
        for name in names.split():
            (tmp_path / folder / name).touch()
    sources = [source for name in files for source in sets_of(name, tmp_path / name)]
    assert sources == [
        QuestionSource(f"test_{name}_{lang}", lang, scoring, tmp_path / name / file)
        for name, lang, scoring, file in (
            ("xquad", "de", "squad", "xquad.de.json"),
            ("xquad", "zh", "squad", "xquad.zh.json.gz"),
            ("mlqa", "de", "mlqa", "test-context-de-question-de.json"),
            ("tydiqa", "fi", "squad", "tydiqa.fi.dev.json"),
            ("tydiqa", "ru", "squad", "tydiqa-goldp-dev-russian.json"),
            ("tydiqa", "sw", "squad", "swahili.dev.json.gz"),
        )
    ]
    (tmp_path / "tydiqa" / "finnish.dev.json").touch()
    with pytest.raises(UserError, match="fi"):
        sets_of("tydiqa", tmp_path / "tydiqa")


def test_every_piece_is_in_a_window_and_neighbours_overlap() -> None:
    for pieces in range(40):
        for room in range(1, 12):
            for stride in range(1, room + 1):
                spans = windows(pieces, room, stride)
                assert spans[0][0] == 0
                covered = {piece for begin, end in spans for piece in range(begin, end)}
                assert covered == set(range(pieces))
                assert all(0 <= end - begin <= room for begin, end in spans)
                for (begin, end), (later, last) in pairwise(spans):
                    assert later == begin + stride
                    assert end - later == room - stride
                    assert last > end
    # An answer as long as the overlap is whole in one of them.
    spans = windows(100, 12, 5)
    for begin in range(100 - 7):
        assert any(first <= begin and begin + 7 <= last for first, last in spans)


# Text, and an answer that begins and ends where words do. Accents composed and not, letters that
# change their length as small ones, vowel signs, white space of several kinds.
WHOLE = [
    ("the old woman reads the book", "old woman"),
    ("  the old  woman", "the old  woman"),
    ("the book.", "book"),
    ("In 1857, (nearly) all; \u201cquoted\u201d", "nearly"),
    ("cafe\u0301 nai\u0308ve re\u0301sume\u0301 end", "nai\u0308ve re\u0301sume\u0301"),
    (
        "\u062d\u062f\u064e\u062b \u0623\u0648\u0651\u0644\u0627\u064b \u0647\u0646\u0627",
        "\u0623\u0648\u0651\u0644\u0627\u064b",
    ),
    ("\u0628\u064a\u062a \u0643\u0628\u064a\u0631 \u0647\u0646\u0627", "\u0643\u0628\u064a\u0631"),
    (
        "\u0939\u093f\u0928\u094d\u0926\u0940 \u092d\u093e\u0937\u093e \u0939\u0948",
        "\u092d\u093e\u0937\u093e",
    ),
    ("a\u00a0b\u3000the\u2028book", "the"),
    ("İstanbul ẞ ﬁn the", "ẞ"),
    ("\ufeffthe book", "the"),
]
# Of WordPiece alone.
ALONE = [("中国的首都是北京。", "北京")]
ALONE += [("the book (1857), in “London”.", gold) for gold in ("1857", "London", "book (1857)")]


@pytest.mark.parametrize(("context", "gold"), WHOLE + ALONE)
def test_characters_to_pieces_and_back(tokens: Tokenizer, context: str, gold: str) -> None:
    begin = context.index(gold)
    end = begin + len(gold)
    extents = extents_of(context, tokens.spans(context))
    held = pieces_at(extents, begin, end)
    assert held is not None
    text = context[extents[held[0]][0] : extents[held[1]][1]].strip()
    if isinstance(tokens, WordPiece):
        assert text == gold
    else:
        # SentencePiece may keep punctuation, and characters that it does not know, with a word.
        while not context[begin - 1 : begin].isspace() and begin:
            begin -= 1
        while not context[end : end + 1].isspace() and end < len(context):
            end += 1
        assert gold in text
        assert text in context[begin:end]


def test_extents_by_hand() -> None:
    context = "unbelievable news"
    extents = extents_of(context, [("un", 0, 2), ("believable", 2, 12), ("news", 13, 17)])
    assert pieces_at(extents, 4, 8) == (1, 1)
    assert pieces_at(extents, 1, 14) == (0, 2)
    assert pieces_at(extents, 12, 13) is None
    # U+2581 alone is white space; a piece may take the space before it along.
    spans = [("\u2581", 0, 1), ("re", 1, 3), ("\u2581b", 4, 6)]
    assert extents_of(" re\u0301 b", spans) == [(1, 1), (1, 4), (5, 6)]
    # A mark that has a piece of its own stays with it.
    assert extents_of("e\u0301", [("e", 0, 1), ("x", 1, 2)]) == [(0, 1), (1, 2)]
    assert extents_of("e\u0301\u0323", [("e", 0, 1)]) == [(0, 3)]


def test_windows_that_do_not_touch_are_refused() -> None:
    assert WindowSizes(20, 8, 8).room(8) == 8
    with pytest.raises(UserError, match=r"7 .*stride 8"):
        WindowSizes(19, 8, 8)


def test_columns_of_an_answer_in_a_window() -> None:
    # Pieces 5 to 7 of the context; windows of pieces, with the context from column 4 on.
    assert columns_in((5, 7), (0, 10), 4) == (9, 11)
    assert columns_in((5, 7), (5, 8), 4) == (4, 6)
    assert columns_in((5, 7), (5, 7), 4) == (0, 0)
    assert columns_in((5, 7), (6, 12), 4) == (0, 0)
    assert columns_in(None, (0, 10), 4) == (0, 0)


def rows(features: Features) -> list[dict[str, int]]:
    return [dict(zip(COLUMNS, row, strict=True)) for row in features.windows.tolist()]


def test_windows_of_questions(vocab: Path, tokens: Tokenizer, tmp_path: Path) -> None:
    questions = read_squad(coloured(tmp_path / "q.json", 25, seed=5))
    numbers = read_dictionary(vocab / "dict.txt")
    features, lost = make_features(questions, tokens, numbers, SIZES)
    assert lost == 0
    seen: dict[int, set[tuple[int, int]]] = {}
    answered = set()
    for window, row in enumerate(rows(features)):
        one = questions[row["question"]]
        ids = features.tokens[features.slice_of(window)].tolist()
        places = features.extents[features.slice_of(window)].tolist()
        context = row["context"]
        words = [numbers.get(piece, 3) for piece in tokens.pieces(one.text)][:9]
        assert ids[:context] == [0, *words, 2, 2]
        assert ids[-1] == 2
        assert len(ids) == row["tokens"] <= 40
        assert places[:context] == [[-1, -1]] * context
        assert places[-1] == [-1, -1]
        seen.setdefault(row["question"], set()).update(map(tuple, places[context:-1]))
        if row["end"]:
            assert context <= row["start"] <= row["end"] < row["tokens"] - 1
            text = one.context[places[row["start"]][0] : places[row["end"]][1]]
            assert text == one.answers[0].text
            answered.add(row["question"])
        else:
            assert row["start"] == 0
            begin, end = one.answers[0].start, one.answers[0].end
            inside = [place for place in places[context:-1] if place[0] < end and place[1] > begin]
            # At most a part of the answer.
            assert not inside or inside[0][0] > begin or inside[-1][1] < end
    assert answered == set(range(len(questions)))
    for number, one in enumerate(questions):
        every = {(begin, end) for _, begin, end in tokens.spans(one.context)}
        assert seen[number] == every


def test_lost_several_and_impossible_answers(tokens: Tokenizer) -> None:
    long = " ".join(["the old woman"] * 30)
    features, lost = make_features([question(long, long)], tokens, {}, SIZES)
    assert lost == 1
    assert not features.column("end").any()
    context = "the old woman reads"
    both: list[Question] = [question(context, "reads", "old"), question(context, impossible=True)]
    features, lost = make_features(both, tokens, {}, SIZES)
    assert lost == 0
    first, second = rows(features)
    extents = features.extents[features.slice_of(0)]
    assert context[extents[first["start"]][0] : extents[first["end"]][1]] == "reads"
    assert (second["start"], second["end"]) == (0, 0)


def test_a_folder_and_its_damage(
    vocabularies: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out, vocab = tmp_path / "q.json", tmp_path / "made", vocabularies[KINDS[0]]
    coloured(file, 4, seed=5)
    about = qa.prepare(file, vocab, out, SIZES, language="de", scoring="mlqa")
    assert about == read_about(out)
    assert (about.name, about.language, about.scoring) == ("q.json", "de", "mlqa")
    assert (about.sizes, about.questions, about.unknown) == (SIZES, 4, 0)
    assert len(read_features(out)) == about.windows
    assert read_squad(out / "squad.json") == read_squad(file)
    assert "warning" not in capsys.readouterr().err
    qa.check_source(file, out)
    coloured(file, 2, seed=6)
    with pytest.raises(UserError, match=rf"{out}: .*{file}"):
        qa.check_source(file, out)
    np.save(out / "tokens.npy", np.load(out / "tokens.npy")[:-1])
    with pytest.raises(UserError, match=f"{out}: .*different sizes"):
        read_features(out)
    content = json.loads((out / "about.json").read_text())
    (out / "about.json").write_text(json.dumps({**content, "format": 99}))
    with pytest.raises(UserError, match=r"about\.json: "):
        read_about(out)


def test_questions_without_answers_cannot_be_trained_on(tmp_path: Path) -> None:
    file = write_squad(tmp_path / "q.json", article("one", {"id": "x", "question": "what?"}))
    with pytest.raises(UserError, match="question x"):
        qa.read_questions(file, "en", "squad", need_answers=True)


def test_a_vocabulary_of_another_language_is_reported(
    vocabularies: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    context = "中国的首都是北京。"
    file = write_squad(tmp_path / "zh.json", article(context, entry("1", "首都?", context, "北京")))
    assert qa.prepare(file, vocabularies[KINDS[0]], tmp_path / "made", SIZES).unknown > 5
    assert "warning: " in capsys.readouterr().err
