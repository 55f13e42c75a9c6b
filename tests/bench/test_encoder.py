"""Tables 1 and 6 of Chen et al. 2021."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from diet_mt.bench import encoder
from diet_mt.bench.commands import BASELINES, SHAPES
from diet_mt.bench.encoder import TABLE_6, VOCABULARIES, make_bert, make_steps, parameters
from diet_mt.models.architectures import ROBERTA_SIZES
from diet_mt.positions import NAMES

from ..processes import called

TINY = {"encoder_layers": 2, "encoder_embed_dim": 16, "encoder_ffn_embed_dim": 24}
TINY["encoder_attention_heads"] = 2


def tiny(encoding: str, **options: Any) -> Any:
    return make_bert(encoding, "tiny", 60, **TINY, **options)


def test_the_shapes_are_those_of_bert() -> None:
    columns = ("layers", "embed_dim", "ffn_embed_dim", "attention_heads")
    sizes = {name: tuple(ROBERTA_SIZES[name][column] for column in columns) for name in SHAPES}
    assert sizes == {"small": (4, 512, 2048, 8), "base": (12, 768, 3072, 12)}


def test_the_models_are_those_of_the_paper() -> None:
    stacks = {name: tiny(name).encoder.sentence_encoder for name in NAMES}
    per_head = {name for name, stack in stacks.items() if stack.segment_positions is not None}
    assert per_head == {"diet-abs", "diet-rel"}
    at_input = {name for name, stack in stacks.items() if stack.segment_input is not None}
    assert at_input == NAMES.keys() - per_head
    (table,) = stacks["diet-abs"].self_attn_positions.tables()
    assert table.query.shape == (2, 512, 128)
    assert stacks["tupe-rel"].self_attn_positions.shape.first_is_cls
    vectors = stacks["shaw"].self_attn_positions.tables()[0]
    assert vectors.of_keys.shape == vectors.of_values.shape == (1, 2 * 1023 + 1, 8)


@pytest.mark.parametrize("encoding", ["diet-abs", "shaw", "tupe-rel"])
def test_a_training_step_moves_the_weights_and_a_forward_pass_does_not(encoding: str) -> None:
    model = tiny(encoding)
    steps = make_steps(model, torch.randint(4, 60, (3, 12)), torch.rand(3, 12) < 0.5)
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    steps["forward"]()
    assert not model.training
    assert all(torch.equal(value, before[name]) for name, value in model.named_parameters())
    steps["train"]()
    assert model.training
    still = {name for name, value in model.named_parameters() if value.equal(before[name])}
    assert {name for name in still if not name.endswith("k_proj.bias")} == set()


@pytest.mark.parametrize("over", BASELINES)
def test_each_takes_turns_with_its_baseline(
    over: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = []

    def noted(encoding: str, shape: str, vocabulary: int, **options: Any) -> Any:
        made.append((encoding, options.get("segment_encoding")))
        model = tiny(encoding, **options)
        stack = model.encoder.sentence_encoder
        assert (model.args.dropout, model.args.attention_dropout) == (0.1, 0.1)
        assert (stack.segment_positions is None) == (made[-1] != ("diet-rel", None))
        return model

    monkeypatch.setattr(encoder, "make_bert", noted)
    monkeypatch.setattr(encoder, "VOCABULARY", 60)
    words = f"--over {over} --encodings diet-rel --tokens 8 --rounds 3 --warmup 1 --batch 3"
    assert called("bench", "encoder", *words.split()) == 0
    at_input = ("learned", None) if over == "learned" else ("diet-rel", "input")
    assert made[2:] == [at_input, ("diet-rel", None)]
    records = [json.loads(line) for line in capsys.readouterr().out.strip().split("\n")]
    assert [(r["encoding"], r["measure"], r["over"]) for r in records] == [
        (name, kind, over) for name in ("learned", "diet-rel") for kind in ("train", "forward")
    ]
    assert all(r["ratio_low"] <= r["ratio_median"] <= r["ratio_high"] for r in records)
    assert {(r["batch"], r["tokens"], r["rounds"]) for r in records} == {(3, 8, 3)}


def test_what_each_has_more_than_the_baseline() -> None:
    layers, heads, longest, rank, width = 12, 12, 512, 128, 768
    at_the_input = (longest + 2) * width  # tables of positions and segments
    more = {
        "DIET-REL": layers * heads * (2 * longest - 1 + 4),
        "DIET-REL (share)": heads * (2 * longest - 1 + 4),
        "DIET-ABS (rank 128)": layers * heads * (2 * longest * rank + 4),
        "DIET-ABS (rank 128, share)": heads * (2 * longest * rank + 4),
    }
    baseline = 110_104_890  # as docs/encoders.md has it; printed as 110.1
    for label, number in {"Devlin et al. (2018)": at_the_input, **more}.items():
        name, options, _ = TABLE_6[label]
        count = parameters(name, VOCABULARIES["English"], **options)
        assert count - baseline == number - at_the_input, label


def test_table_6_to_the_last_printed_decimal(capsys: pytest.CaptureFixture[str]) -> None:
    assert called("bench", "parameters") == 0
    lines = capsys.readouterr().out.strip().split("\n")
    _, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    assert [row[0] for row in rows] == list(TABLE_6)
    for row in rows:
        for ours, printed in ((row[1], row[2]), (row[4], row[5])):
            difference = float(ours.partition("M")[0]) - float(printed.partition("M")[0])
            assert abs(difference) <= 0.05, row
