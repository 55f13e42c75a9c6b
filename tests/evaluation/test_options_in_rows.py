"""Every option that makes another model is in its row, so seeds of different models never meet."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from diet_mt.errors import UserError
from diet_mt.evaluation.groups import group
from diet_mt.evaluation.records import Result, model_data
from diet_mt.models._options import DietTransformerConfig, NestedConfig, PositionOptions
from diet_mt.models._options import nested_config as checked

from .rows import row

# Option -> an encoding that takes it, and values that each make a model of their own.
VALUES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "position_encoding": ("", ("none", "sinusoidal", "learned", "shaw", "t5", "diet-rel")),
    "position_in": ("shaw", (None, "encoder,decoder", "encoder", "decoder", "cross")),
    "position_input": ("diet-abs", (None, "learned", "sinusoidal", "concat")),
    "position_randomized": ("diet-rel", (None, 4096, 8192)),
    "position_sharing": ("diet-rel", (None, "head-wise", "layer-wise")),
    "position_rank": ("diet-abs", (None, 64, 128, 512)),
    "position_clip": ("shaw", (None, 8, 20)),
    "position_values": ("shaw", (False, True)),
    "position_buckets": ("t5", (None, 16)),
    "position_max_distance": ("t5", (None, 64)),
    "linformer_k": ("linformer", (None, 16)),
    "position_kernel": ("kerple", (None, "power")),
    "position_shift": ("shape", (None, 100)),
    "position_global_shift": ("cape", (None, 10.0)),
    "position_local_shift": ("cape", (None, 0.0)),
    "position_global_scale": ("cape", (None, 1.4)),
    "attention_scale": ("diet-rel", ("head", "model")),
}
# Rotary's scaling is chosen when decoding, too; its values go together.
SCALED = [
    {"position_scaling": "linear", "position_scaling_factor": 2.0},
    {"position_scaling": "linear", "position_scaling_factor": 4.0},
    {"position_scaling": "yarn", "position_scaling_factor": 2.0, "position_trained_length": 64},
    {"position_scaling": "yarn", "position_scaling_factor": 2.0, "position_trained_length": 99},
]


def result(seed: int, encoding: str, **options: Any) -> Result:
    """The row of a model with these options, all of one architecture, as an evaluation makes it."""
    config = DietTransformerConfig(position_encoding=encoding or options["position_encoding"])
    for name, value in options.items():
        setattr(config, name, value)
    text = checked(config, NestedConfig).signatures()[0]
    given = {name.replace("_", "-"): value for name, value in options.items()}
    return row(
        seed=seed,
        positions=text,
        model=model_data(given),
        hypotheses=f"toy.en-de/{seed}.hyp.txt",
    )


def test_every_option_is_looked_at() -> None:
    options = {field.name for field in dataclasses.fields(PositionOptions)} - {"_name"}
    assert options == {*VALUES, *(name for each in SCALED for name in each)}


@pytest.mark.parametrize("name", VALUES)
def test_models_that_differ_in_an_option_are_lines_of_their_own(name: str) -> None:
    encoding, values = VALUES[name]
    seeds = range(1, 1 + 2 * len(values))
    rows = [
        result(seed, encoding, **{name: value})
        for seed, value in zip(seeds, 2 * values, strict=True)
    ]
    (found,) = group(rows)
    assert len(found.lines) == len(values) == len({line.name for line in found.lines})
    for line in found.lines:
        first, second = (each.seed for each in line.results)
        assert second == first + len(values)


def test_scaled_frequencies_are_told_apart() -> None:
    (found,) = group(result(seed, "rotary", **case) for seed, case in enumerate([{}, *SCALED]))
    assert len(found.lines) == 1 + len(SCALED)


def test_another_transformer_is_another_group() -> None:
    rows = [result(1, "shaw"), result(2, "shaw", encoder_layers=2)]
    assert len(group(rows)) == 2


def test_the_options_are_those_of_the_model() -> None:
    with pytest.raises(UserError, match="--position-rank 8: shaw has no such option"):
        result(1, "shaw", position_rank=8)
