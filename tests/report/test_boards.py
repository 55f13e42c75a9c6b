"""Tables of translation results: cells, remarks, commands, and BLEU by attention."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from diet_mt.evaluation.records import Result
from diet_mt.report.blocks import Folded, Heading, Note, Table, markdown, text
from diet_mt.report.boards import board, brief_board, commands, content, details, remarks
from diet_mt.report.boards import tables_of_places as places_of
from diet_mt.report.sections import Section

from ..evaluation.rows import changed, row, seeds_of
from .toy import section

WILD = "cpu <!-- results:end --> a|b <i>&"
GOLDEN = Path(__file__).parent / "golden"


def full() -> Section:
    """Every column: seeds, p-values, the paper's scores, lengths, penalties, roles."""
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


def cells(table: Table) -> dict[str, dict[str, str]]:
    """System -> title -> text."""
    return {each[0]: dict(zip(table.heads, each, strict=True)) for each in table.rows}


def test_every_column() -> None:
    (table,) = content(full())
    assert isinstance(table, Table)
    shown = cells(table)
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
    assert shown["sinusoidal_tiny"]["to sinusoidal"] == "0"
    assert [each["cluster"] for each in shown.values()] == ["1", "2", "3", ""]
    assert shown["none_tiny"]["p (Holm)"] == "≤ 0.0002"
    assert shown["diet_rel (not measured)"]["paper"] == "39.47"
    titles = set(table.heads) - {"system", "BLEU of each seed", "parameters"}
    assert titles - {"paper, to sinusoidal"} == set(table.helps)


def test_every_evaluation() -> None:
    _, folded, _ = details(full())
    assert isinstance(folded, Folded)
    assert isinstance(folded.content, Table)
    shown = cells(folded.content)["sinusoidal_tiny"]
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
        file.write_text(shown, encoding="utf-8")
        pytest.fail(f"{file} was missing; it is there now")
    assert shown == file.read_text(encoding="utf-8")


def test_remarks_on_training() -> None:
    usual, places, faster = (
        seeds_of(name, {1: 30.0})[0] for name in ("sinusoidal", "rotary", "t5")
    )
    places = replace(places, training={**places.training, "position-in": "encoder"})
    faster = replace(faster, training={**faster.training, "lr": 0.003, "cpu": True})
    (line,) = remarks(section([usual, places, faster]))
    assert "--lr 0.003: t5_tiny" in line
    assert remarks(section([replace(usual, training={}), faster])) == []
    first, second = seeds_of("diet_rel", {1: 30.0, 2: 31.0})
    second = replace(second, training={**second.training, "max-epoch": 99})
    assert any("diet_rel_tiny" in line for line in remarks(section([first, second])))
    single = [each for name in ("sinusoidal", "shaw") for each in seeds_of(name, {1: 38.0})]
    assert len(remarks(section(single, lambda *_: 0.5))) == 1
    assert remarks(section(single)) == remarks(full()) == []


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
FULL = [["29.60", "28.90", "34.70", "34.30"], ["38.00", "37.90", "38.40", "38.20"]]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([*ALL, NONE], [FULL]),
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
    """BLEU without the encoder and with it."""
    bleu = [
        [[re.sub(" ±.*", "", cell) for cell in line[1:]] for line in table.rows]
        for _, table, _ in places_of(section(rows))
    ]
    assert bleu == expected


def test_models_that_differ_in_more_have_their_own_tables() -> None:
    others = [acting(places, "sharing=head-wise", 30.0) for places in PARTS]
    named = [replace(each, system="mine" + each.system[8:], bleu=20.0) for each in ALL]
    tables = places_of(section([*ALL, *others, *named]))
    assert len({caption for caption, *_ in tables}) == 3
    assert {table.rows[1][1] for _, table, _ in tables} == {
        f"{bleu} ± 1.50" for bleu in ("38.00", "30.00", "20.00")
    }


def test_a_brief_board_is_narrow_and_has_partial_placements_in_their_table_alone() -> None:
    heading, table = brief_board([full()])
    assert isinstance(heading, Heading)
    assert isinstance(table, Table)
    assert table.heads == ["system", "BLEU", "±", "length", "to sinusoidal", "p (Holm)"]
    _, table, caption, places = brief_board([section([*ALL, NONE])])
    assert isinstance(table, Table)
    assert isinstance(places, Table)
    assert cells(table).keys() == {"diet_rel_tiny", "none_tiny"}
    assert "34.70 ± 1.50" in places.rows[0]
    assert caption == Note("BLEU by where diet_rel_tiny acts:")
    assert list(map(type, brief_board([section(ALL[1:])]))) == [Heading, Note, Table]
