"""Scores of translations: BLEU, intervals, the accuracy of roles; names of hypotheses."""

from __future__ import annotations

import dataclasses
import math
import os
from pathlib import Path
from typing import Any

import pytest

from diet_mt.corpora import recipes
from diet_mt.errors import UserError
from diet_mt.evaluation.evaluate import USUAL, hypotheses_name, words_per_second
from diet_mt.evaluation.generation import Output
from diet_mt.evaluation.groups import group
from diet_mt.evaluation.scores import interval, role_accuracy, roles_of, score
from diet_mt.evaluation.sentences import Sentences
from diet_mt.report.blocks import text
from diet_mt.report.boards import board, content
from diet_mt.report.sections import section_of

from .rows import seeds_of


def test_bleu_by_hand() -> None:
    # Every n-gram is right, and one of six words is missing: the brevity penalty alone remains.
    scores = score(["a b c d e"], ["a b c d e f"])
    assert scores.bleu == pytest.approx(100 * math.exp(1 - 6 / 5), abs=1e-4)
    assert "tok:13a" in scores.bleu_signature
    assert "nc:6" in scores.chrf_signature
    assert score(["Ein Hund."], ["Ein Hund."]).chrf == 100


def test_the_interval_of_bleu() -> None:
    """A score that every resample has has no width; that of half-right sentences has."""
    right = ["a b c d e"] * 8
    assert interval(right, right) == (100.0, 0.0)
    mixed = ["a b c d e", "a b c d x"] * 4
    mean, half = interval(mixed, right)
    assert interval(mixed, right) == (mean, half)
    assert mean == pytest.approx(score(mixed, right).bleu, abs=3)
    assert 3 < half < 30


def test_the_interval_is_the_same_in_any_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    mixed, right = ["a b c d e", "a b c d x"] * 4, ["a b c d e"] * 8
    usual = interval(mixed, right)
    for seed in ("7", "none"):
        monkeypatch.setenv("SACREBLEU_SEED", seed)
        assert interval(mixed, right) == usual
        assert os.environ["SACREBLEU_SEED"] == seed


def test_words_per_second_by_hand() -> None:
    # Three sentences of four words in all, six sentences a second: half a second.
    output = Output([], sentences_per_second=6.0, tokens_per_second=1.0)
    assert words_per_second(["ein Hund", "", "zwei Katzen"], output) == 8.0


def test_unequal_counts_are_refused() -> None:
    with pytest.raises(UserError, match="1 hypotheses but 2 references"):
        score(["a"], ["a", "b"])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "c/x_tiny.3.hyp.txt"),
        ({"beam": 5, "lenpen": 1.0}, "c/x_tiny.3.beam-5.lenpen-1.0.hyp.txt"),
        ({"subset": "valid"}, "c/x_tiny.3.subset-valid.hyp.txt"),
        ({"checkpoint": "averaged.pt"}, "c/x_tiny.3.checkpoint-averaged.hyp.txt"),
        ({"length_penalty": "gnmt"}, "c/x_tiny.3.length_penalty-gnmt.hyp.txt"),
        ({"direction": "en-de"}, "c/x_tiny.3.direction-en-de.hyp.txt"),
        ({"options": "01234567"}, "c/x_tiny.3.options-01234567.hyp.txt"),
    ],
)
def test_other_ways_of_decoding_have_files_of_their_own(
    changes: dict[str, Any], expected: str
) -> None:
    assert hypotheses_name("c", "x_tiny", 3, **{**USUAL, **changes}) == expected


Corpus = tuple[Path, list[str], list[str]]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """The folder, the German of the test set, and that of the twins."""
    out = tmp_path_factory.mktemp("demo")
    recipes.write_demo(out, {"train": 300, "valid": 20, "test": 300})
    texts = [(out / f"test{name}.de").read_text(encoding="utf-8") for name in ("", ".twins")]
    references, twins = (text.removesuffix("\n").split("\n") for text in texts)
    return out, references, twins


def test_twins_stand_beside_their_sentences(corpus: Corpus) -> None:
    """A sentence is its twin's twin: pairs that follow each other in the test set name each other,
    and both have the same words in English, but for those that agree.
    """
    out, references, twins = corpus
    assert len(references) == len(twins) == 300
    assert 60 < sum(map(bool, twins)) < 240
    assert not {*references} & {""}
    pairs = [n for n in range(299) if references[n + 1] == twins[n]]
    assert len(pairs) > 20
    assert all(twins[n + 1] == references[n] for n in pairs)
    assert all(twin != own for twin, own in zip(twins, references, strict=True))
    assert not list(out.glob("train.twins*")) + list(out.glob("valid.twins*"))


def test_perfect_swapped_and_ignorant_translations(corpus: Corpus) -> None:
    out, references, twins = corpus
    swapped = [twin or own for twin, own in zip(twins, references, strict=True)]
    assert roles_of(references, references, out / "test.de") == 100
    assert roles_of(swapped, references, out / "test.de") == 0
    assert roles_of(["xyz"] * 300, references, out / "test.de") == 50
    assert roles_of([""] * 300, references, out / "test.de") == 50
    half = [(references if n % 2 else swapped)[n] for n in range(300)]
    odd = sum(bool(twin) and n % 2 for n, twin in enumerate(twins))
    expected = 100 * odd / sum(map(bool, twins))
    assert roles_of(half, references, out / "test.de") == pytest.approx(expected, abs=1e-4)


def test_a_wrong_word_elsewhere_changes_nothing(corpus: Corpus) -> None:
    """One word that both have, replaced; the roles are as clear as before."""
    out, references, twins = corpus
    hypotheses = []
    for own, twin in zip(references, twins, strict=True):
        shared = [word for word in own.split() if word in twin.split()] or [own.split()[-1]]
        hypotheses.append(own.replace(shared[-1], "xyz"))
    found = roles_of(hypotheses, references, out / "test.de")
    assert found is not None
    assert found > 95


def test_other_test_sets_have_no_roles(corpus: Corpus) -> None:
    out, references, _ = corpus
    assert roles_of(references, references, out / "valid.de") is None
    assert role_accuracy(["a"], ["a"], [""]) is None
    with pytest.raises(UserError, match=r"test.twins.de: 300 lines, but .*test.de has 2"):
        roles_of(["a", "b"], ["a", "b"], out / "test.de")


def test_the_table_has_a_column_for_them() -> None:
    rows = [
        dataclasses.replace(row, roles=share)
        for system, shares in {"sinusoidal": (97.0, 99.0), "none": (51.25,)}.items()
        for row, share in zip(
            seeds_of(system, dict(enumerate([30.0] * len(shares), 1))), shares, strict=True
        )
    ]
    (section,) = (section_of(each, Sentences({}, {})) for each in group(rows))
    (grid,) = content(section)
    place = grid.heads.index("roles")
    shown = {each[0]: each[place] for each in grid.rows}
    assert shown == {"sinusoidal_tiny": "98.0", "none_tiny": "51.2"}
    plain = [dataclasses.replace(row, roles=None) for row in rows]
    assert "roles" not in text(
        board([section_of(each, Sentences({}, {})) for each in group(plain)])
    )
