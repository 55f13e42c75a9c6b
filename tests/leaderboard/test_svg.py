"""Pictures as files: what stands where, and that names are text."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from diet_mt.errors import UserError
from diet_mt.evaluation.groups import encoding_of
from diet_mt.evaluation.records import read_results
from diet_mt.leaderboard.beside import Beside, Speed, Speeds, read_beside
from diet_mt.leaderboard.standings import Section
from diet_mt.leaderboard.svg import LONGEST, svg

from ..evaluation.rows import row, seeds_of
from .conftest import sections_of

NAMESPACE = "{http://www.w3.org/2000/svg}"


def drawn(text: str) -> ET.Element:
    return ET.fromstring(text)


def texts(scene: ET.Element, name: str) -> list[str]:
    found = [
        each for each in scene.iter(f"{NAMESPACE}text") if name in each.get("class", "").split()
    ]
    return ["".join(each.itertext()) for each in found]


def test_rows_are_those_of_the_board(full: list[Section]) -> None:
    scene = drawn(svg(full, Beside()))
    standings = [standing for section in full for standing in section.standings]
    assert texts(scene, "name") == [standing.name for standing in standings]
    measured = [f"{s.line.bleu:.2f}" if s.line else "" for s in standings]
    assert texts(scene, "value") == measured
    assert texts(scene, "title") == [section.group.conditions.heading for section in full]
    assert texts(scene, "key") == ["at the input", "in the logits", "rotation of q and k", *KEYS]


KEYS = ["projected keys", "no positions"]


def test_a_long_or_wild_name_does_no_harm() -> None:
    wild = row(system="x" * 50 + "<b>&", test_set="</svg>")
    names = texts(drawn(svg(sections_of([wild]), Beside())), "name")
    assert len(names[0]) == LONGEST
    assert names[0].startswith("…xx")
    assert "<b>&" in names[0]


def test_speed_and_parameters_where_three_are_known() -> None:
    rows = [seeds_of(s, {1: b}, parameters=p)[0] for s, b, p in TRADED]
    known = {"t5": 100.0, "shaw": 150.0, "none": 200.0}
    by_encoding = {
        encoding_of(row): Speed(*[known[row.system]] * 3) for row in rows if row.system in known
    }
    timed = Speeds("a machine", by_encoding)
    speeds = {("tiny", "toy.en-de"): timed}
    for picture in ("speed", "parameters"):
        scene = drawn(svg(sections_of(rows), Beside(speeds=speeds), picture))
        points = [each for each in scene.iter() if each.get("data-system")]
        names = {each.get("data-system") for each in points}
        assert names == {
            "t5_tiny",
            "shaw_tiny",
            "none_tiny",
            *(["alibi_tiny"] * (picture[0] == "p")),
        }
    places = {
        each.get("data-system"): float(each.findall(f"{NAMESPACE}circle")[1].get("cx", "")[:-1])
        for each in drawn(svg(sections_of(rows), Beside(speeds=speeds), "speed")).iter()
        if each.get("data-system")
    }
    gap = places["shaw_tiny"] - places["t5_tiny"]
    assert places["none_tiny"] - places["shaw_tiny"] == pytest.approx(gap, abs=0.02)
    with pytest.raises(UserError, match="--picture speed: there is nothing to draw it from"):
        svg(sections_of(rows), Beside(), "speed")


TRADED = [("t5", 33.0, 3_000_000), ("shaw", 34.0, 2_500_000), ("none", 30.0, 2_000_000)]
TRADED += [("alibi", 31.0, 2_000_000)]


def test_lengths_are_of_counted_sentences(said: Path) -> None:
    file = said / "toy.en-de.jsonl"
    scene = drawn(svg(sections_of(read_results(file)), read_beside([file]), "lengths"))
    curves = {each.get("data-system") for each in scene.iter() if each.get("data-system")}
    assert curves == {"sinusoidal_tiny", "diet_rel_tiny", "shaw_tiny", "none_tiny"}
