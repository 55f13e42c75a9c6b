"""Tables of translation results: cells and remarks."""

from __future__ import annotations

from dataclasses import replace

from diet_mt.report.blocks import markdown, table
from diet_mt.report.boards import STANDING, board, remarks
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
        "roles": 98.5,
        "lenpen_tried": "0.6:1 1.0:2",
    }
    rows = [
        *seeds_of("sinusoidal", {1: 38.6, 2: 39.0}, **more),
        *seeds_of("none", {1: 30.0}, **more),
    ]
    shaw = "shaw sharing=head-wise clip=16 values=True in=encoder,decoder scale=head"
    rows += [changed(each, positions=shaw) for each in seeds_of("shaw", {1: 39.9}, **more)]
    return section(rows, lambda one, _: 1 / 10001 if one == "none" else 0.02)


def test_every_column() -> None:
    own = table(full().standings, STANDING)
    shown = {each[0]: dict(zip(own.heads, each, strict=True)) for each in own.rows}
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


def test_texts_of_rows_are_not_markup() -> None:
    fields = dict.fromkeys(("system", "test_set", "bleu_signature"), WILD)
    versions = {"fairseq": WILD, "torch": WILD}
    wild = row(**fields, versions=versions, evaluation=f"fairseq-generate '{WILD}'")
    shown = markdown(board([section([wild])]))
    assert "<!--" not in shown
    assert "<i>" not in shown
