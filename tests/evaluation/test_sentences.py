"""Counts of sentences give SacreBLEU's scores again."""

from __future__ import annotations

from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU

from diet_mt.corpora.parallel import read_lines
from diet_mt.errors import UserError
from diet_mt.evaluation.hypotheses import read_hypotheses
from diet_mt.evaluation.records import read_results
from diet_mt.evaluation.resampling import bleu
from diet_mt.evaluation.sentences import count_rows, read_sentences, sentence_bleu

from ..report.toy import SENTENCES, write_toy


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A file of rows with counts, and the references."""
    folder = tmp_path_factory.mktemp("counts")
    return write_toy(folder)


def test_bleu_of_any_part_is_sacrebleu_s(place: tuple[Path, Path]) -> None:
    file, path = place
    references = list(read_lines(path))
    saved = read_sentences([file])
    (texts,) = saved.texts.values()
    rows = read_results(file)
    assert len(saved.counts) == len(rows)
    for row in rows:
        hypotheses = read_hypotheses(file.parent, row)
        counts = saved.counts[row.hypotheses_sha256, row.references_sha256]
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


def test_lengths_are_those_of_the_texts(place: tuple[Path, Path]) -> None:
    file, path = place
    (texts,) = read_sentences([file]).texts.values()
    assert texts.source_lengths == [
        len(line.split()) for line in read_lines(path.with_suffix(".en"))
    ]
    assert len(texts.reference_lengths) == SENTENCES


def test_references_of_no_row_are_refused(place: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "other.de").write_text("x\n", encoding="utf-8")
    with pytest.raises(UserError, match="toy test"):
        count_rows([place[0]], [tmp_path / "other.de"])
