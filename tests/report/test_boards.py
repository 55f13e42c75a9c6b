"""Tables of translation results: cells, remarks, and commands."""

from __future__ import annotations

from dataclasses import replace

from diet_mt.report.blocks import Folded, Table, markdown, table
from diet_mt.report.boards import STANDING, board, commands, details, remarks
from diet_mt.report.sections import Section

from ..evaluation.rows import changed, row, seeds_of
from .toy import section

WILD = "cpu <!-- results:end --> a|b <i>&"


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
    shaw = "shaw sharing=head-wise clip=16 values=True in=encoder,decoder scale=head"
    rows += [changed(each, positions=shaw) for each in seeds_of("shaw", {1: 39.9}, **more)]
    return section(rows, lambda one, _: 1 / 10001 if one == "none" else 0.02)


def cells(table: Table) -> dict[str, dict[str, str]]:
    """System -> title -> text."""
    return {each[0]: dict(zip(table.heads, each, strict=True)) for each in table.rows}


def test_every_column() -> None:
    own = table(full().standings, STANDING)
    shown = cells(own)
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
    titles = set(own.heads) - {"system", "BLEU of each seed", "parameters"}
    assert titles - {"paper, to sinusoidal"} == set(own.helps)


def test_every_evaluation() -> None:
    _, folded, _ = details(full())
    assert isinstance(folded, Folded)
    assert isinstance(folded.content, Table)
    shown = cells(folded.content)["sinusoidal_tiny"]
    wanted = {"seed": "2", "BLEU": "39.00", "bootstrap": "39.00 ± 1.50", "3-grams": "30.51",
              "updates": "700", "target tokens seen": "6,100,000", "checkpoint": "cccccccc",
              "trained at": "v0", "on": "2026-01-02"}  # fmt: skip
    assert wanted.items() <= shown.items()


def test_remarks_on_training() -> None:
    usual, places, faster = (
        seeds_of(name, {1: 30.0})[0] for name in ("sinusoidal", "rotary", "t5")
    )
    places = replace(places, training={**places.training, "position-in": "encoder"})
    faster = replace(faster, training={**faster.training, "lr": 0.003, "cpu": True})
    line, _ = remarks(section([usual, places, faster]))  # and that seeds are single
    assert "--lr 0.003: t5_tiny" in line
    assert len(remarks(section([replace(usual, training={}), faster]))) == 1
    first, second = seeds_of("diet_rel", {1: 30.0, 2: 31.0})
    second = replace(second, training={**second.training, "max-epoch": 99})
    assert any("diet_rel_tiny" in line for line in remarks(section([first, second])))
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
