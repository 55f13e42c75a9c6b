"""Every row of the real tasks, and gold answers in subwords, from a folder: DIET_MT_DATA."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from diet_mt.bert import tokenizer
from diet_mt.bert.answer_scores import squad_scores
from diet_mt.bert.glue import TASKS, read_file, read_languages, xnli_files
from diet_mt.bert.squad import read_squad
from diet_mt.bert.windows import extents_of, pieces_at
from diet_mt.corpora import pieces

DATA = Path(os.environ.get("DIET_MT_DATA", ""))
pytestmark = pytest.mark.skipif(
    "DIET_MT_DATA" not in os.environ, reason="DIET_MT_DATA, the folder of the real data, is not set"
)

# Rows of each file, from the README of the data.
GLUE = {
    "CoLA": (8551, 1043, 1063),
    "SST-2": (67349, 872, 1821),
    "MRPC": (3668, 408, 1725),
    "RTE": (2490, 277, 3000),
    "STS-B": (5749, 1500, 1379),
    "WNLI": (635, 71, 146),
    "QNLI": (4854, 609, 1000),
    "QQP": (10000, 2000, 1000),
    "MNLI": (744, 200, 826, 56, 174),
}
XNLI = {
    "dev": dict.fromkeys(("en", "hr", "ko", "sw", "ur", "zh"), 2490),
    "test": dict.fromkeys(("en", "hr", "ko", "sw", "ur"), 5010),
}
# Per cent of the gold answers that come back from subwords the same after SQuAD's normalization, at
# least: the rest begin or end within a word in Arabic ("and" is written with the next word) or
# within a piece.
LEAST = {"ar": 98.5, "de": 99.5, "en": 99.5, "es": 99.5, "zh": 97.0}


@pytest.mark.parametrize("name", GLUE)
def test_rows_of_glue(name: str) -> None:
    task = TASKS[name]
    rows = [sum(1 for _ in read_file(DATA / "glue", task, file)) for file in task.files]
    assert tuple(rows) == GLUE[name]


@pytest.mark.parametrize("kind", XNLI)
def test_rows_of_xnli(kind: str) -> None:
    languages = read_languages(xnli_files(DATA / "xnli", kind))
    assert {language: len(examples) for language, examples in languages.items()} == XNLI[kind]
    for examples in languages.values():
        labels = [example.label for example in examples]
        assert {labels.count(label) for label in labels} == {len(examples) // 3}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A tokenizer of each kind, learnt from all contexts and questions."""
    text, *folders = (tmp_path_factory.mktemp(name) for name in ("text", "wp", "cased", "sp"))
    files = [DATA / "qa" / "xquad" / f"xquad.{lang}.json.gz" for lang in LEAST]
    texts = (part for file in files for q in read_squad(file) for part in (q.context, q.text))
    lines = dict.fromkeys(" ".join(part.split()) for part in texts)
    (text / "lines").write_text("\n".join([*lines, ""]), encoding="utf-8")
    for folder, cased in zip(folders, (False, True), strict=False):
        tokenizer.learn_wordpiece([text / "lines"], folder / tokenizer.WORDPIECE, 6000, cased=cased)
    pieces.learn([text / "lines"], folders[2] / tokenizer.SENTENCEPIECE, 6000)
    return folders


@pytest.mark.parametrize("language", LEAST)
def test_gold_answers_to_subwords_and_back(folders: list[Path], language: str) -> None:
    questions = read_squad(DATA / "qa" / "xquad" / f"xquad.{language}.json.gz")
    assert len(questions) == 1190
    for folder in folders:
        tokens, same = tokenizer.load(folder), 0
        for question in questions:
            extents = extents_of(question.context, tokens.spans(question.context))
            (answer,) = question.answers
            place = pieces_at(extents, answer.start, answer.end)
            assert place is not None
            text = question.context[extents[place[0]][0] : extents[place[1]][1]].strip()
            assert answer.text.strip() in text
            same += squad_scores(text, [answer.text], version_2=False)[0] == 1
        assert 100 * same / len(questions) >= LEAST[language], folder.name
