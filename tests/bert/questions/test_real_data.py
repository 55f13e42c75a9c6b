"""Every question of XQuAD, TyDi QA and SQuAD in a folder of real data: DIET_MT_DATA."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from diet_mt.bert import tokenizer, wordpiece
from diet_mt.bert.answer_scores import squad_scores
from diet_mt.bert.questions.spans import extents_of, pieces_at, text_at
from diet_mt.bert.questions.squad import read_squad
from diet_mt.corpora import pieces

DATA = os.environ.get("DIET_MT_DATA", "")
pytestmark = pytest.mark.skipif(not DATA, reason="DIET_MT_DATA names no folder of real data")

LANGUAGES = ("ar", "de", "en", "es", "zh")
# Per cent of the gold answers that come back from subwords the same after SQuAD's normalization, at
# least: the rest begin or end within a word in Arabic ("and" is written with the next word) or
# within a piece.
LEAST = {"ar": 98.5, "de": 99.5, "en": 99.5, "es": 99.5, "zh": 97.0}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A tokenizer of each kind, learned from all contexts and questions."""
    text, *folders = (tmp_path_factory.mktemp(name) for name in ("text", "wp", "cased", "sp"))
    files = [Path(DATA) / "qa" / "xquad" / f"xquad.{lang}.json.gz" for lang in LANGUAGES]
    texts = (each for file in files for q in read_squad(file) for each in (q.context, q.text))
    lines = dict.fromkeys(" ".join(each.split()) for each in texts)
    (text / "lines").write_text("\n".join([*lines, ""]), encoding="utf-8")
    for folder, cased in zip(folders, (False, True), strict=False):
        wordpiece.learn([text / "lines"], folder / tokenizer.WORDPIECE, 6000, cased=cased)
    pieces.learn([text / "lines"], folders[2] / tokenizer.SENTENCEPIECE, 6000)
    return folders


@pytest.mark.parametrize("language", LANGUAGES)
def test_gold_answers_to_subwords_and_back(folders: list[Path], language: str) -> None:
    questions = read_squad(Path(DATA) / "qa" / "xquad" / f"xquad.{language}.json.gz")
    assert len(questions) == 1190
    for folder in folders:
        tokens, same = tokenizer.load(folder), 0
        for question in questions:
            extents = extents_of(question.context, tokens.spans(question.context))
            (answer,) = question.answers
            place = pieces_at(extents, answer.start, answer.end)
            assert place is not None
            text = text_at(question.context, extents[place[0]][0], extents[place[1]][1])
            assert answer.text.strip() in text
            same += squad_scores(text, [answer.text], version_2=False)[0] == 1
        assert 100 * same / len(questions) >= LEAST[language], folder.name


@pytest.mark.parametrize(
    ("file", "count", "impossible"),
    [
        ("squad/train-v1.1.subset.json.gz", 3807, 0),
        ("squad/dev-v2.0.subset.json.gz", 1407, 702),
        ("tydiqa-goldp/english.train.json.gz", 3696, 0),
        ("tydiqa-goldp/english.dev.json.gz", 440, 0),
        ("tydiqa-goldp/korean.dev.json.gz", 276, 0),
        ("tydiqa-goldp/arabic.dev.json.gz", 921, 0),
        ("tydiqa-goldp/bengali.dev.json.gz", 113, 0),
        ("tydiqa-goldp/finnish.dev.json.gz", 782, 0),
        ("tydiqa-goldp/indonesian.dev.json.gz", 565, 0),
        ("tydiqa-goldp/russian.dev.json.gz", 812, 0),
        ("tydiqa-goldp/swahili.dev.json.gz", 499, 0),
        ("tydiqa-goldp/telugu.dev.json.gz", 669, 0),
    ],
)
def test_counts_of_the_files(file: str, count: int, impossible: int) -> None:
    questions = read_squad(Path(DATA) / "qa" / file)
    assert len(questions) == count
    assert sum(each.impossible for each in questions) == impossible
