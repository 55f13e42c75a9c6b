"""Role accuracy of made translations of the generated corpus itself."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from diet_mt.corpora import recipes
from diet_mt.errors import UserError
from diet_mt.evaluation.groups import group
from diet_mt.evaluation.scores import role_accuracy, roles_of
from diet_mt.evaluation.sentences import Kept
from diet_mt.report.blocks import text
from diet_mt.report.boards import board, content
from diet_mt.report.sections import section_of

from .rows import seeds_of

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
    (section,) = (section_of(each, Kept({}, {})) for each in group(rows))
    (grid,) = content(section)
    place = grid.heads.index("roles")
    shown = {each[0]: each[place] for each in grid.rows}
    assert shown == {"sinusoidal_tiny": "98.0", "none_tiny": "51.2"}
    plain = [dataclasses.replace(row, roles=None) for row in rows]
    assert "roles" not in text(board([section_of(each, Kept({}, {})) for each in group(plain)]))
