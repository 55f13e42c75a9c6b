"""The registry: names, options and the combinations that are refused."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from diet_mt.positions import NAMES, OPTIONS, AttentionShape, build_position, create, defaults_of
from diet_mt.positions.options import options_of
from diet_mt.system.errors import UserError

from ..toy import sharing_modes
from .cases import CASES, KINDS, no_input

DEFAULT_SHARING = {name: case.sharing for name, case in CASES.items() if case.sharing is not None}


def test_every_encoding_has_a_case_under_its_own_name() -> None:
    assert NAMES.keys() == CASES.keys()
    for name, encoding in NAMES.items():
        assert encoding.name == name
        expected = ["none", "head-wise", "layer-wise"] if name in DEFAULT_SHARING else [None]
        assert sharing_modes(name) == expected


@pytest.mark.parametrize("name", CASES)
def test_options_and_their_defaults(name: str) -> None:
    encoding = build_position(name)
    assert encoding.sharing == DEFAULT_SHARING.get(name)
    values = {field.name: getattr(encoding, field.name) for field in fields(encoding)}
    assert values == {"sharing": encoding.sharing, **CASES[name].options}
    # None and False, the values of options that were not given.
    silent = dict.fromkeys(OPTIONS) | {"values": False}
    assert build_position(name, **silent) == encoding


@pytest.mark.parametrize("name", CASES)
def test_where_an_encoding_acts_and_that_it_saves_nothing_but_parameters(name: str) -> None:
    added = build_position(name).input_positions(9, 12)
    assert (added is not None) == (CASES[name].input_row is not no_input)
    inside = {
        kind: build_position(name).attention_positions(AttentionShape(2, 3, 4, 9, 9, kind))
        for kind in KINDS
    }
    acts_in = tuple(kind for kind, positions in inside.items() if positions is not None)
    assert acts_in == NAMES[name].acts_in == CASES[name].acts_in
    for module in (added, *inside.values()):
        if module is not None:
            assert module.state_dict().keys() == dict(module.named_parameters()).keys()


def test_encodings_of_an_option() -> None:
    for option in OPTIONS.keys() - {"sharing"}:
        assert defaults_of(option) == {
            name: case.options[option] for name, case in CASES.items() if option in case.options
        }
    assert defaults_of("sharing") == DEFAULT_SHARING


def test_an_option_means_the_same_in_all_encodings() -> None:
    """A name is one option with one flag, whichever encoding takes it."""
    for encoding in NAMES.values():
        assert {**OPTIONS, **dict(options_of(encoding))} == OPTIONS
    assert len({option.flag for option in OPTIONS.values()}) == len(OPTIONS)


YARN = {"scaling": "yarn", "scaling_factor": 2.0}
NTK = {"scaling": "ntk", "scaling_factor": 2.0, "trained_length": 9}
NAN = float("nan")


@pytest.mark.parametrize(
    ("name", "options", "named"),
    [
        ("diet_rel", {}, "diet_rel.*alibi, cape, .*diet-rel.*tupe"),
        ("diet-abs", {"rank": 0}, "--position-rank 0"),
        ("diet-abs", {"rank": "2"}, "--position-rank 2"),
        ("diet-abs", {"rank": 2.5}, "--position-rank 2.5"),
        ("concat", {"rank": 0}, "--position-rank 0"),
        ("shaw", {"clip": 0}, "--position-clip 0"),
        ("t5", {"buckets": 0}, "--position-buckets 0"),
        ("t5", {"buckets": 7}, "--position-buckets 7"),
        ("tupe-rel", {"buckets": 2}, "--position-buckets 2"),
        ("deberta", {"buckets": 5}, "--position-buckets 5"),
        ("deberta", {"buckets": 1022}, "--position-buckets 1022"),
        ("deberta", {"shared_projections": True, "sharing": "none"}, "--position-sharing none"),
        ("tupe-rel", {"max_distance": 0}, "--position-max-distance 0"),
        ("t5", {"max_distance": 16}, "--position-max-distance 16"),
        ("linformer", {"projected": 0}, "--linformer-k 0"),
        ("diet-rel", {"sharing": "heads"}, "--position-sharing heads.*none, head-wise"),
        ("shape", {"shift": -1}, "--position-shift -1"),
        ("cape", {"global_shift": -0.5}, "--position-global-shift -0.5"),
        ("cape", {"local_shift": NAN}, "--position-local-shift nan"),
        ("cape", {"global_scale": "x"}, "--position-global-scale x"),
        ("cape", {"global_scale": 0.9}, "--position-global-scale 0.9"),
        ("kerple", {"kernel": "exp"}, "--position-kernel exp: .*log, power"),
        ("rotary", {"scaling": "su", "scaling_factor": 2.0}, "su: .*linear, ntk, .*yarn"),
        ("rotary", {"scaling": "ntk"}, "--position-scaling-factor"),
        ("rotary", {"scaling_factor": 2.0}, "--position-scaling-factor"),
        ("rotary", {"scaling": "ntk", "scaling_factor": 0.5}, "--position-scaling-factor 0.5"),
        ("rotary", YARN, "--position-trained-length"),
        ("rotary", NTK, "--position-trained-length"),
        ("rotary", {**YARN, "trained_length": 1}, "--position-trained-length 1"),
        ("rotary", {"scaling": "longrope"}, "-factor: .*-trained-length: .*-pair-factors: "),
        ("rotary", {"base": 1.0}, "--position-base 1.0"),
        *[(name, {"sharing": "none"}, "none") for name in ("none", "learned", "rotary", "alibi")],
        # All problems are reported together.
        ("diet-abs", {"sharing": "x", "rank": 0}, "--position-sharing x: .*; --position-rank 0: "),
        (
            "t5",
            {"buckets": 3, "clip": 4},
            "--position-buckets 3: .*; --position-clip 4: .*shaw",
        ),
    ],
)
def test_invalid_options(name: str, options: dict[str, Any], named: str) -> None:
    with pytest.raises(UserError, match=named) as error:
        build_position(name, **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "options", "named"),
    [
        ("diet_rol", {}, "diet-rol.*diet-rel"),
        ("diet_rel", {"rank": 3}, "--position-rank 3"),
        ("diet_rel", {"kind": "self"}, "self.*encoder, decoder, cross"),
        ("rotary", {"kind": "cross"}, "cross.*encoder, decoder"),
        ("sinusoidal", {}, "input_positions"),
        ("diet-rel", {"extrapolation": "cut"}, "cut.*refuse, clip, repeat"),
    ],
)
def test_an_encoding_that_cannot_be_created(name: str, options: dict[str, Any], named: str) -> None:
    with pytest.raises(UserError, match=named):
        create(name, heads=3, head_dim=4, max_length=9, **options)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_shared_projections_of_another_number_of_layers(count: int) -> None:
    sizes = {"layers": 2, "heads": 3, "head_dim": 4, "max_length": 9}
    positions = create("deberta", shared_projections=True, **sizes)
    positions.attention = [object()] * count
    with pytest.raises(UserError, match=f"--position-shared-projections: .* {count} .* 2 layers"):
        positions.for_layers(range(5), range(5))
