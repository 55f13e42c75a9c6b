"""The paper's figures are those of its table 4, beside our systems of the same kind."""

from __future__ import annotations

import pytest

from diet_mt.evaluation.groups import Conditions, group
from diet_mt.leaderboard.published import figures, source
from diet_mt.positions import NAMES

from ..evaluation.rows import row

# Chen et al. 2021, table 4: sinusoidal (Vaswani et al.), Shaw et al., DIET-REL.
TABLE_4 = {
    "en-de": (39.00, 40.10, 39.47),
    "de-en": (38.42, 38.90, 38.49),
    "en-cs": (18.55, 18.74, 18.68),
    "cs-en": (22.93, 23.89, 23.93),
}
SYSTEMS = ("sinusoidal", "shaw", "diet_rel")


def conditions(test_set: str, direction: str) -> Conditions:
    (found,) = group([row(test_set=test_set, direction=direction)])
    return found.conditions


@pytest.mark.parametrize("direction", TABLE_4)
def test_table_4(direction: str) -> None:
    found = figures(conditions("newstest2018", direction))
    assert {system: figure.bleu for system, figure in found.items()} == dict(
        zip(SYSTEMS, TABLE_4[direction], strict=True)
    )
    baseline = TABLE_4[direction][0]
    assert [figure.gain for figure in found.values()] == pytest.approx(
        [bleu - baseline for bleu in TABLE_4[direction]]
    )


def test_they_belong_to_systems_that_exist() -> None:
    names = {name.replace("-", "_") for name in NAMES}
    assert set(figures(conditions("newstest2018", "en-de"))) <= names


@pytest.mark.parametrize("name", ["newstest2018", "WMT18 newstest2018", "newstest2018 (wmt18)"])
def test_the_test_set_is_known_by_a_word(name: str) -> None:
    assert figures(conditions(name, "de-en"))


@pytest.mark.parametrize("name", ["newstest2017", "newstest2018-half", "Multi30k"])
def test_other_test_sets_have_none(name: str) -> None:
    assert figures(conditions(name, "de-en")) == {}


def test_other_directions_have_none() -> None:
    assert figures(conditions("newstest2018", "en-fr")) == {}


def test_the_source_is_named() -> None:
    assert source().startswith("Chen et al. 2021, table 4 (https://arxiv.org/abs/2104.08698): ")
