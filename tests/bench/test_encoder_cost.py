"""The cost table compares equal work over the baseline of the same run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from diet_mt.bench import encoder_cost
from diet_mt.bench.encoder_cost import (
    BASELINE,
    MEASURES,
    OVER,
    SHAPES,
    EncoderSettings,
    make_bert,
    make_cases,
)
from diet_mt.bench.machine import machine
from diet_mt.models.diet_roberta import DietRobertaModel
from diet_mt.positions import NAMES

from ..calling import called


@pytest.fixture
def toy_shape(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(SHAPES, "toy", (2, 16, 24, 2))
    monkeypatch.setitem(encoder_cost.BATCHES, "toy", 3)
    monkeypatch.setattr(encoder_cost, "VOCABULARY", 60)
    return "toy"


def test_the_shapes_are_those_of_bert() -> None:
    """110.1 million parameters with input positions and segments (paper, table 6)."""
    model = make_bert(BASELINE, "base")
    count = sum(parameter.numel() for parameter in model.parameters())
    # What BERT has beside it: its pooler, and the words that round 30,000 leaves out.
    rest = 768 * 768 + 768 + 522 * 768 + 522
    assert (count + rest) / 1e6 == pytest.approx(110.1, abs=0.05)


def test_the_models_are_those_of_the_paper(toy_shape: str) -> None:
    stacks = {name: make_bert(name, toy_shape).encoder.sentence_encoder for name in NAMES}
    per_head = {name for name, stack in stacks.items() if stack.segment_positions is not None}
    assert per_head == {"diet-abs", "diet-rel"}
    at_input = {name for name, stack in stacks.items() if stack.segment_input is not None}
    assert at_input == NAMES.keys() - per_head
    (table,) = stacks["diet-abs"].self_attn_positions.tables()
    assert table.query.shape == (2, 512, 128)
    assert stacks["tupe-rel"].self_attn_positions.shape.first_is_cls
    vectors = stacks["shaw"].self_attn_positions.tables()[0]
    assert vectors.of_keys.shape == vectors.of_values.shape == (1, 2 * 1023 + 1, 8)


@pytest.mark.parametrize("encoding", sorted(NAMES))
def test_a_training_step_moves_the_weights_and_a_forward_pass_does_not(
    encoding: str, toy_shape: str
) -> None:
    encoder = make_bert(encoding, toy_shape)
    tokens = torch.randint(4, 60, (3, 12))
    cases = make_cases(encoder, tokens, torch.rand(3, 12) < 0.5)
    before = {name: value.detach().clone() for name, value in encoder.named_parameters()}
    cases["forward"]()
    assert not encoder.training
    assert all(torch.equal(value, before[name]) for name, value in encoder.named_parameters())
    cases["train"]()
    assert encoder.training
    moved = [name for name, value in encoder.named_parameters() if not value.equal(before[name])]
    still = {name for name in before.keys() - set(moved) if not name.endswith("k_proj.bias")}
    assert still == set()


SETTINGS = EncoderSettings(
    ["diet-rel"], MEASURES, OVER[0], "cpu", tokens=8, batch=None, rounds=3, warmup=1
)


def test_segments_per_head_are_timed_beside_segments_at_the_input(
    toy_shape: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = []

    def noting(encoding: str, shape: str, **changes: str) -> DietRobertaModel:
        made.append((encoding, changes.get("segments")))
        return make_bert(encoding, shape, **changes)

    monkeypatch.setattr(encoder_cost, "make_bert", noting)
    encoder_cost.measure_all([toy_shape], replace(SETTINGS, over=OVER[1]), "command")
    assert made[2:] == [("diet-rel", "input"), ("diet-rel", None)]
    stacks = [
        make_bert("diet-rel", toy_shape, **{"segments": kind} if kind else {}).encoder
        for _, kind in made[2:]
    ]
    assert [each.sentence_encoder.segment_positions is None for each in stacks] == [True, False]
    records = [json.loads(line) for line in capsys.readouterr().out.strip().split("\n")]
    head = encoder_cost.table(records).split("\n")[2]
    assert [cell.strip() for cell in head.split("|")[1:-1]] == [
        *("encoding", "train, ms", "over segments-at-input"),
        *("forward, ms", "over segments-at-input"),
    ]


def test_records_and_table(
    toy_shape: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    how = SETTINGS
    encoder_cost.measure_all([toy_shape], how, "command")
    captured = capsys.readouterr()
    assert "toy cpu diet-rel train: round 3 of 3" in captured.err
    records = [json.loads(line) for line in captured.out.strip().split("\n")]
    assert [(r["encoding"], r["measure"]) for r in records] == [
        ("learned", "train"),
        ("learned", "forward"),
        ("diet-rel", "train"),
        ("diet-rel", "forward"),
    ]
    assert all(r["ratio_low"] <= r["ratio_median"] <= r["ratio_high"] for r in records)
    file = tmp_path / "cost.jsonl"
    file.write_text(captured.out, encoding="utf-8")
    assert called("bench", "table", str(file)) == 0
    text = capsys.readouterr().out
    assert "| learned  |" in text
    assert "two copies of the same encoder" in text
    assert "3 x 8 tokens" in text


def test_the_table_has_the_papers_figures_beside_ours() -> None:
    def record(encoding: str, kind: str, ratio: float) -> dict[str, object]:
        spread = {f"ratio_{key}": ratio for key in ("low", "median", "high")}
        about = {"shape": "small", "encoding": encoding, "measure": kind, "batch": 2, "tokens": 8}
        facts = machine("cpu", False, "c")
        return {**about, "rounds": 1, "ms_median": 100.0, **spread, **facts}

    text = encoder_cost.table([record("shaw", "train", 1.05), record("shaw", "forward", 1.2)])
    row = next(line for line in text.split("\n") if line.startswith("| shaw"))
    assert [cell.strip() for cell in row.split("|")][3:-1] == [
        "+5.0 % (+5.0 to +5.0)",
        "+24 %",
        "100",
        "+20.0 % (+20.0 to +20.0)",
        "+65 %",
    ]
