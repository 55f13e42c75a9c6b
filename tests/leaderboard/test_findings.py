"""Sentences say what the numbers do, for any numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from diet_mt.blocks import Grid
from diet_mt.evaluation.lengths import Estimate
from diet_mt.leaderboard.charts import Point
from diet_mt.leaderboard.findings import (
    of_learning,
    of_lengths,
    of_scores,
    of_section,
    of_trade,
    pareto_front,
)
from diet_mt.leaderboard.standings import LEVEL, Section

from ..evaluation.rows import seeds_of
from .conftest import sections_of


def test_the_best_and_how_many_are_told_apart(full: list[Section]) -> None:
    for section in full:
        said = of_section(section)
        best = max((s for s in section.standings if s.line), key=lambda s: s.line and s.line.bleu)
        assert best.line is not None
        assert said.startswith(f"{best.name} has the highest BLEU, {best.line.bleu:.2f}, ")
        others = [s for s in section.standings if s.line and s.line.system != "sinusoidal"]
        above = [s for s in others if s.p_value is not None and s.p_value <= LEVEL]
        above = [s for s in above if (s.gain or 0) > 0]
        if any(s.p_value is not None for s in others):
            assert f"{len(above)} of {len(others)} systems are above sinusoidal_base" in said
        missing = sum(s.p_value is None for s in others)
        assert (f"{missing} not tested" in said) == bool(0 < missing < len(others))


def test_without_p_values_or_others_it_says_less(plain: Section) -> None:
    assert of_section(plain) == (
        "diet_rel_tiny has the highest BLEU, 34.75, 1.25 above sinusoidal_tiny."
    )
    (alone,) = sections_of(seeds_of("t5", {1: 30.0}))
    assert of_section(alone) == "t5_tiny: 30.00 ± 1.50 BLEU."


def point(name: str, x: float, y: float) -> Point:
    return Point(name, "input", x, y, name)


def test_none_surpasses_the_front() -> None:
    found = [point("a", 1, 9), point("b", 2, 8), point("c", 1.5, 7), point("d", 3, 8)]
    assert [each.name for each in pareto_front(found, most=True)] == ["a", "d"]
    assert [each.name for each in pareto_front(found, most=False)] == ["a"]
    said = of_trade(found, [found[0], found[3]], "fast")
    assert (
        said == "Of the 4 measured, only a and d have more BLEU than all others at least as fast."
    )
    said = of_trade(found, found[:1], "small")
    assert said == "Of the 4 measured, only a has more BLEU than all others at least as small."
    said = of_trade(found[:2], found[:2], "fast")
    assert said == "Of the 2 measured, each has more BLEU than all others at least as fast."


def test_speeds_that_cannot_be_told_apart_are_no_advantage() -> None:
    ranges = {"a": (8, 12, 9), "b": (11, 15, 8), "c": (16, 17, 7), "d": (13, 30, 6)}
    found = [
        replace(point(name, (low + high) / 2, y), around=(low, high))
        for name, (low, high, y) in ranges.items()
    ]
    assert [each.name for each in pareto_front(found, most=True)] == ["a", "c"]
    assert [each.name for each in pareto_front(found, most=False)] == ["a"]


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        ((0.7, 1.2), (-0.3, 0.9), "no difference can be told from chance, whatever the length of "
         "the source."),
        ((2.0, 0.5), (-1.5, 1.0), "+2.0 ± 0.5 BLEU on sources of 1–10 words and -1.5 ± 1.0 on "
         "those of 11–30."),
        ((2.0, 1.0), (1.0, 1.1), "+2.0 ± 1.0 BLEU on sources of 1–10 words and +1.0 ± 1.1 on "
         "those of 11–30; no change with the length can be told."),
    ],
)  # fmt: skip
def test_a_lead_by_length(first: tuple[float, float], last: tuple[float, float], said: str) -> None:
    gaps = [Estimate(value, value - half, value + half) for value, half in (first, last)]
    assert of_lengths("x", "y", gaps, ["1–10", "11–30"]) == f"x to y: {said}"


def test_learning_is_compared_where_all_have_come() -> None:
    curves = [("a", [(1, 90), (2, 45), (3, 10)]), ("b", [(1, 80), (2, 60)]), ("a", [(2, 55)])]
    said = "After 2 updates the perplexity is lowest with a (50.0) and highest with b (60.0)."
    assert of_learning(curves) == (said, ("a", "b"))
    assert of_learning(curves[:1]) == ("", ())


def scores(heads: str, *rows: str) -> str:
    cells = [row.split("|") for row in rows]
    found = heads.split("|")
    return of_scores(Grid(["system", *found], cells, [False, *[True] * len(found)]))


def test_scores_are_counted_by_task() -> None:
    paper = "paper: P|99.0|99.0|99.0|99.0"
    said = scores("MRPC|CoLA|MRPC F1|average", "a|81.2 (1)|3.0|70|9", paper, "b|80|4.0 (2)|71|9")
    assert said == "a has the highest score of 1 of 2 tasks, b of 1."
    assert scores("en|de|fr", "a|1|2|3", "b|0|0|") == "a has the highest score of 3 of 3 languages."


def test_a_tie_of_tasks_is_a_tie() -> None:
    found = scores("RTE|CoLA|QNLI", "a|1.0|2.0|5.0", "b|1.0|3.0|4.0", "c|0.1|1.0|5.0")
    assert found == (
        "b has the highest score of 1 of 3 tasks; a and b are even in RTE; "
        "a and c are even in QNLI."
    )
