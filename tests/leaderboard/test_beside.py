"""Speeds are those of the models that a section shows, as far as the benchmark says so."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from diet_mt.errors import UserError
from diet_mt.evaluation.json_rows import write_rows
from diet_mt.evaluation.records import Result
from diet_mt.leaderboard.beside import read_beside
from diet_mt.leaderboard.views import by_speed

from ..evaluation.rows import seeds_of
from .conftest import sections_of

SYSTEMS = {"sinusoidal": 33.0, "t5": 32.0, "shaw": 31.0}
TOY = "--data data/toy.en-de/bin"


def timed(file: Path, *options: str, systems: Iterable[str] = SYSTEMS, **more: object) -> None:
    """Adds a run of the benchmark."""
    command = "diet-mt bench speed " + " ".join(options)
    usual = {"size": "tiny", "measure": "decode", "machine": "a machine", "threads": 2}
    numbers = {"median": 100, "low": 90, "high": 110, "revision": "abc", "command": command}
    file.parent.mkdir(exist_ok=True)
    with open(file, "a", encoding="utf-8") as out:
        for system in systems:
            about = {"system": system, "positions": seeds_of(system, {1: 1.0})[0].positions}
            out.write(json.dumps({**about, **usual, **numbers, **more}) + "\n")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write_rows(tmp_path / "toy.jsonl", [row for rows in map(one, SYSTEMS) for row in rows])
    return tmp_path / "toy.jsonl"


def one(system: str, **changes: str) -> list[Result]:
    return seeds_of(system, {1: SYSTEMS[system]}, **changes)


def test_the_run_that_timed_most_encodings_is_taken(results: Path) -> None:
    file = results.parent / "benchmark" / "x.jsonl"
    checkpoints = [f"--checkpoint {name}={name}.pt" for name in SYSTEMS]
    timed(file, TOY, *checkpoints, median=50)
    timed(file, TOY, systems=["stock"] * 5, positions="")  # has none
    speeds = read_beside([results]).speeds["tiny", "toy.en-de"]
    assert speeds.where == "toy.en-de, a machine, 2 threads, revision abc"
    assert [speed.median for speed in speeds.by_encoding.values()] == [50] * 3
    timed(file, TOY, systems=[*SYSTEMS, "none"], decode_length=20)
    speeds = read_beside([results]).speeds["tiny", "toy.en-de"]
    assert speeds.where == (
        "toy.en-de, a machine, 2 threads, revision abc, weights random, every translation 20 "
        "tokens long"
    )
    assert [speed.median for speed in speeds.by_encoding.values()] == [100] * 4


def test_which_weights_are_random_is_said(results: Path) -> None:
    timed(
        results.parent / "benchmark" / "x.jsonl",
        TOY,
        "--checkpoint stock=a.pt --checkpoint t5=b.pt",
    )
    speeds = read_beside([results]).speeds["tiny", "toy.en-de"]
    assert speeds.where.endswith(", weights random but for t5")


def test_speeds_on_other_sentences_are_not_shown(results: Path) -> None:
    timed(results.parent / "benchmark" / "x.jsonl", "--data data/other.en-de/bin")
    timed(results.parent / "benchmark" / "made-up.jsonl")
    beside = read_beside([results])
    assert list(beside.speeds) == [("tiny", "other.en-de")]
    toy, other = (
        sections_of([row for system in SYSTEMS for row in one(system, corpus=corpus)])[0]
        for corpus in ("toy.en-de", "other.en-de")
    )
    assert by_speed(toy, beside) is None
    view = by_speed(other, beside)
    assert view is not None
    assert view.axes.endswith("other.en-de, a machine, 2 threads, revision abc, weights random")


def test_a_variant_has_not_the_speed_of_the_usual_encoding(results: Path) -> None:
    file = results.parent / "benchmark" / "x.jsonl"
    timed(file, TOY)
    clipped = "shaw clip=16 scale=head"
    (section,) = sections_of(
        [*one("sinusoidal"), *one("t5"), *one("shaw"), replace(one("shaw")[0], positions=clipped)]
    )

    def with_speed() -> list[str]:
        speeds = read_beside([results]).speeds["tiny", "toy.en-de"]
        return [line.results[0].positions for line in section.group.lines if speeds.of(line)]

    assert clipped not in with_speed()
    assert len(with_speed()) == len(SYSTEMS)
    timed(file, TOY, systems=["shaw"], positions=clipped)
    assert clipped in with_speed()
    assert len(with_speed()) == len(SYSTEMS) + 1


@pytest.mark.parametrize("median", ["x", None, float("nan"), -math.inf])
def test_a_speed_is_a_number(results: Path, median: object) -> None:
    timed(results.parent / "benchmark" / "x.jsonl", TOY, median=median)
    with pytest.raises(UserError, match=r"x.jsonl, line 1: field 'median' is .*, expected"):
        read_beside([results])
