"""Counts of sentences give SacreBLEU's scores again, and are kept for the rows that are there."""

from __future__ import annotations

import random
from itertools import combinations
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU

from diet_mt.corpora.parallel import read_lines
from diet_mt.errors import UserError
from diet_mt.evaluation.kept import kept_hypotheses
from diet_mt.evaluation.records import read_results
from diet_mt.evaluation.resampling import bleu
from diet_mt.evaluation.sentences import (
    SHOWN,
    _differing,
    files_beside,
    keep_sentences,
    read_sentences,
    sentence_bleu,
)

from ..leaderboard.said import SENTENCES, write_said


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A file of rows, their counts beside it, and the references."""
    folder = tmp_path_factory.mktemp("said")
    file, references = write_said(folder)
    keep_sentences([file], [references])
    return file, references


def test_bleu_of_any_part_is_sacrebleu_s(said: tuple[Path, Path]) -> None:
    file, path = said
    references = list(read_lines(path))
    kept = read_sentences([file])
    (texts,) = kept.texts.values()
    rows = read_results(file)
    assert len(kept.counts) == len(rows)
    for row in rows:
        hypotheses = kept_hypotheses(file.parent, row)
        counts = kept.counts[row.hypotheses_sha256, row.references_sha256]
        for members in (range(SENTENCES), [3], [5, 17, 5], range(40, 90)):
            own, theirs = [hypotheses[n] for n in members], [references[n] for n in members]
            expected = BLEU().corpus_score(own, [theirs]).score
            sums = counts.statistics(texts.reference_lengths)[list(members)].sum(axis=0)
            assert bleu(sums) == pytest.approx(expected)
        each = sentence_bleu(counts, texts.reference_lengths)
        metric = BLEU(effective_order=True)
        for number in (0, 7, 100):
            expected = metric.sentence_score(hypotheses[number], [references[number]]).score
            assert each[number] == pytest.approx(expected)


def test_texts_are_those_of_a_few_sentences(said: tuple[Path, Path]) -> None:
    file, path = said
    (texts,) = read_sentences([file]).texts.values()
    references, sources = (list(read_lines(p)) for p in (path, path.with_suffix(".en")))
    assert texts.source_lengths == [len(line.split()) for line in sources]
    assert 0 < len(texts.numbers) <= SHOWN < SENTENCES
    assert texts.references == [references[number] for number in texts.numbers]
    assert texts.sources == [sources[number] for number in texts.numbers]


def test_the_sentence_on_which_two_systems_differ_most_is_kept(said: tuple[Path, Path]) -> None:
    file, _ = said
    kept = read_sentences([file])
    (texts,) = kept.texts.values()
    first = [row for row in read_results(file) if row.seed == 1]
    counts = [kept.counts[row.hypotheses_sha256, row.references_sha256] for row in first]
    scores = [sentence_bleu(each, texts.reference_lengths) for each in counts]
    for one, other in combinations(scores, 2):
        gaps = [abs(x - y) for x, y in zip(one, other, strict=True)]
        assert gaps.index(max(gaps)) in texts.numbers


def test_of_many_systems_the_sentences_of_most_pairs_are_kept() -> None:
    """30 systems that differ on one sentence of their own each, by much, and on all by chance."""
    draw = random.Random(5)
    scores = [[draw.random() for _ in range(500)] for _ in range(30)]
    for system, own in enumerate(scores):
        own[10 * system] = 50
    found = _differing(scores)
    assert len(found) == SHOWN
    assert found == sorted(found)
    assert {10 * system for system in range(30)} <= set(found)
    assert _differing([[1.0, 2.0], [1.0, 2.0]]) == []


def test_a_check_writes_nothing(said: tuple[Path, Path]) -> None:
    file, references = said
    keep_sentences([file], [references], check=True)
    counts, _ = files_beside(file)
    whole = counts.read_text(encoding="utf-8")
    counts.write_text(whole[: whole.index("\n") + 1], encoding="utf-8")
    with pytest.raises(UserError, match="not of these rows and references"):
        keep_sentences([file], [references], check=True)
    keep_sentences([file], [references])
    assert counts.read_text(encoding="utf-8") == whole


def test_mistakes_are_told(said: tuple[Path, Path], tmp_path: Path) -> None:
    file, references = said
    other = tmp_path / "other.de"
    other.write_text("x\n", encoding="utf-8")
    with pytest.raises(UserError, match="none of the --references are those of a row"):
        keep_sentences([file], [other])
    with pytest.raises(UserError, match=r"lines, but .*other\.de has 1"):
        keep_sentences([file], [references], [other])
    with pytest.raises(UserError, match="2 --sources, but 1 --references"):
        keep_sentences([file], [references], [other, other])
