"""Tables of translation results: cells, remarks, commands, and BLEU by attention."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from diet_mt.evaluation.records import Result
from diet_mt.report.blocks import Grid, Heading, Note, markdown, text
from diet_mt.report.boards import (
    board,
    brief_board,
    commands,
    content,
    details,
    remarks,
    tables_of_places,
)
from diet_mt.report.markers import with_section
from diet_mt.report.sections import Section

from ..evaluation.rows import changed, row, seeds_of
from .stub import section

WILD = "cpu <!-- results:end --> a|b <i>&"
GOLDEN = Path(__file__).parent / "golden"


def full() -> Section:
    """Every column: seeds, p-values, the paper's figures, lengths, penalties, roles."""
    more = {
        "direction": "en-de",
        "test_set": "newstest2018",
        "length_ratio": 0.975,
        "precisions": "69.12/44.05/30.51/21.18",
        "train_tokens": 6_100_000,
        "roles": 98.5,
        "lenpen_tried": "0.6:1 1.0:2",
        "train_revision": "v0",
    }
    rows = [
        *seeds_of("sinusoidal", {1: 38.6, 2: 39.0}, **more),
        *seeds_of("none", {1: 30.0}, **more),
    ]
    shaw = "shaw sharing=head-wise clip=20 values=True in=encoder,decoder scale=head"
    rows += [changed(each, positions=shaw) for each in seeds_of("shaw", {1: 39.9}, **more)]
    return section(rows, lambda one, _: 1 / 10001 if one == "none" else 0.02)


def cells(grid: Grid) -> dict[str, dict[str, str]]:
    """System -> title -> text."""
    return {each[0]: dict(zip(grid.heads, each, strict=True)) for each in grid.rows}


def test_every_column() -> None:
    (grid,) = content(full())
    shown = cells(grid)
    assert shown["shaw_tiny"] == {
        "system": "shaw_tiny",
        "BLEU": "39.90",
        "±": "0.75",
        "cluster": "1",
        "length": "0.975",
        "to sinusoidal": "+1.10",
        "p (Holm)": "0.0200",
        "paper": "40.10",
        "paper, to sinusoidal": "+1.10",
        "chrF": "55.50",
        "roles": "98.5",
        "BLEU of each seed": "1: 39.90",
        "length penalty": "1: 0.6",
        "parameters": "1,234,567",
    }
    assert shown["sinusoidal_tiny"]["BLEU of each seed"] == "1: 38.60, 2: 39.00"
    assert [each["cluster"] for each in shown.values()] == ["1", "2", "3", ""]
    assert shown["none_tiny"]["p (Holm)"] == "≤ 0.0002"
    assert shown["diet_rel (not measured)"]["paper"] == "39.47"
    titles = set(grid.heads) - {"system", "BLEU of each seed", "parameters"}
    assert titles - {"paper, to sinusoidal"} == set(grid.helps)


def test_every_evaluation() -> None:
    _, folded, _ = details(full())
    shown = cells(folded.grid)["sinusoidal_tiny"]  # type: ignore[union-attr]
    wanted = {"seed": "2", "BLEU": "39.00", "bootstrap": "39.00 ± 1.50", "3-grams": "30.51",
              "updates": "700", "target tokens seen": "6,100,000", "checkpoint": "cccccccc",
              "trained at": "v0", "on": "2026-01-02"}  # fmt: skip
    assert wanted.items() <= shown.items()


@pytest.mark.parametrize("name", ["text", "markdown"])
def test_golden(name: str) -> None:
    """A whole board; to accept another, delete the file and run the test twice."""
    file = GOLDEN / f"board.{name}"
    shown = {"text": text, "markdown": markdown}[name](board([full()]))
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        file.write_text(shown, encoding="utf-8")
        pytest.fail(f"{file} was missing; it is there now")
    assert shown == file.read_text(encoding="utf-8")


def test_a_brief_board_is_narrow() -> None:
    heading, grid = brief_board([full()])
    assert isinstance(heading, Heading)
    assert isinstance(grid, Grid)
    assert grid.heads == ["system", "BLEU", "±", "length", "to sinusoidal", "p (Holm)"]


def test_seeds_of_different_trainings_are_named() -> None:
    first, second = seeds_of("diet_rel", {1: 30.0, 2: 31.0})
    second = replace(second, training={**second.training, "max-epoch": 99})
    assert any("diet_rel_tiny" in line for line in remarks(section([first, second])))


def test_other_trainings_than_the_baseline_s_are_named() -> None:
    usual, places, faster = (
        seeds_of(name, {1: 30.0})[0] for name in ("sinusoidal", "rotary", "t5")
    )
    places = replace(places, training={**places.training, "position-in": "encoder"})
    faster = replace(faster, training={**faster.training, "lr": 0.003, "cpu": True})
    (line,) = remarks(section([usual, places, faster]))
    assert "--lr 0.003: t5_tiny" in line
    assert remarks(section([replace(usual, training={}), faster])) == []


def test_a_table_without_a_second_seed_is_marked() -> None:
    rows = [each for system in ("sinusoidal", "shaw") for each in seeds_of(system, {1: 38.0})]
    assert len(remarks(section(rows, lambda *_: 0.5))) == 1
    assert remarks(section(rows)) == []
    assert remarks(full()) == []


def test_commands_are_those_of_any_seed_and_system() -> None:
    assert commands(full()) == [
        "fairseq-train data/bin --arch ARCH --seed SEED --save-dir CHECKPOINTS",
        "fairseq-generate data/bin --path CHECKPOINTS/checkpoint_best.pt",
    ]


def test_texts_of_rows_are_not_markup() -> None:
    fields = dict.fromkeys(("system", "test_set", "bleu_signature"), WILD)
    versions = {"fairseq": WILD, "torch": WILD}
    wild = row(**fields, versions=versions, evaluation=f"fairseq-generate '{WILD}'")
    shown = markdown(board([section([wild])]))
    assert "<!--" not in shown
    assert "<i>" not in shown
    readme = "<!-- results:begin -->\n<!-- results:end -->\n"
    once = with_section(readme, "results", shown)
    assert with_section(once, "results", shown) == once


PARTS = {
    "encoder": 38.0,
    "decoder": 28.9,
    "cross": 34.7,
    "encoder,decoder": 37.9,
    "encoder,cross": 38.4,
    "decoder,cross": 34.3,
}


def acting(places: str, options: str = "sharing=none", bleu: float = 38.2) -> Result:
    words = ["diet-rel", options, *([f"in={places}"] if places else []), "scale=head"]
    system = f"diet_rel.{places}" if places else "diet_rel"
    return row(system=system, positions=" ".join(words), bleu=bleu)


ALL = [acting(""), *(acting(places, bleu=bleu) for places, bleu in PARTS.items())]
NONE = row(system="none", arch="none_tiny", positions="none scale=head", bleu=29.6)


def values(*rows: Result) -> list[list[list[str]]]:
    """Of each table the BLEU without the encoder and with it."""
    tables = tables_of_places(section(rows))
    return [[[re.sub(" ±.*", "", c) for c in r[1:]] for r in grid.rows] for _, grid, _ in tables]


FULL = [["29.60", "28.90", "34.70", "34.30"], ["38.00", "37.90", "38.40", "38.20"]]


def test_each_cell_is_the_model_that_acts_there() -> None:
    shared = row(system="diet_rel.shared", positions="diet-rel sharing=head-wise scale=head")
    ((caption, grid, names),) = tables_of_places(section([*ALL, NONE, shared]))
    assert caption == "BLEU by where diet_rel_tiny acts"
    assert grid.rows[1][1] == "38.00 ± 1.50"
    assert names == {f"diet_rel.{places} (diet_rel_tiny)" for places in PARTS}
    assert values(*ALL, NONE, shared) == [FULL]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([ALL[3], ALL[4]], [[["", "", "34.70", ""], ["", "37.90", "", ""]]]),  # cells left empty
        ([ALL[0], NONE], []),  # no partial placement
        ([ALL[0], ALL[4], NONE], []),  # nothing acts in cross-attention
        # Without positions, but other in another option.
        ([*ALL, changed(NONE, positions="none scale=model")], [[["", *FULL[0][1:]], FULL[1]]]),
        # The shorter name has a cell that two claim.
        ([*ALL, NONE, replace(acting("cross", bleu=50.0), system="diet_rel.cross.x")], [FULL]),
        ([*ALL, NONE, replace(NONE, system="none.again", bleu=31.0)], [FULL]),
        # Positions at the input as well: nothing is without positions.
        ([*(changed(r, positions=f"{r.encoding} input=sinusoidal") for r in ALL), NONE], []),
    ],
)
def test_tables_by_attention(rows: list[Result], expected: list[list[list[str]]]) -> None:
    assert values(*rows) == expected


def test_models_that_differ_in_more_have_their_own_tables() -> None:
    others = [acting(places, "sharing=head-wise", 30.0) for places in PARTS]
    named = [replace(each, system="mine" + each.system[8:], bleu=20.0) for each in ALL]
    tables = tables_of_places(section([*ALL, *others, *named]))
    assert len({caption for caption, *_ in tables}) == 3
    assert {grid.rows[1][1][:5] for _, grid, _ in tables} == {"38.00", "30.00", "20.00"}


def test_partial_placements_are_in_brief_tables_of_places_alone() -> None:
    brief = markdown(brief_board([section([*ALL, NONE])]))
    assert "diet_rel.cross" not in brief
    assert "34.70 ± 1.50" in brief
    assert "| diet_rel_tiny" in brief
    assert list(map(type, brief_board([section(ALL[1:])]))) == [Heading, Note, Grid]
