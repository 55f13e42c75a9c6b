"""The registry: names, options and what they refuse."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from diet_mt.errors import UserError
from diet_mt.positions import (
    DECODER,
    ENCODER,
    NAMES,
    OPTIONS,
    AttentionShape,
    build_position,
    takers,
)
from diet_mt.positions.options import options_of

from .. import oracle
from ..toy import KINDS, sharing_modes

# Every encoding with the options it takes and their defaults, beside the sharing. Typed in: what is
# refused by mistake would otherwise drop out of all tests unseen.
SETTLED: dict[str, dict[str, Any]] = {
    "none": {},
    "sinusoidal": {},
    "learned": {},
    "shape": {"shift": 500},
    "cape": {"global_shift": 5.0, "local_shift": 0.5, "global_scale": 1.03},
    "concat": {"rank": None},
    "shaw": {"clip": 16, "values": False},
    "t5": {"buckets": 32, "max_distance": 128},
    "tupe-abs": {},
    "tupe-rel": {"buckets": 32, "max_distance": 128},
    "rotary": {"scaling": None, "scaling_factor": None, "trained_length": None},
    "pope": {},
    "alibi": {},
    "kerple": {"kernel": "log"},
    "sandwich": {},
    "fire": {},
    "deberta": {"clip": 512},
    "diet-abs": {"rank": None},
    "diet-rel": {},
    "linformer": {"projected": 32},
    "diet-abs-lin": {"rank": None, "projected": 32},
}
# The sharing that each paper has; an encoding without parameters per head or layer has none.
#   shaw       one set of vectors per layer for all heads (section 3.3)
#   t5         one table for all layers (section 2.1)
#   tupe-*     U_Q and U_K shared by the layers (section 3.2)
#   diet-rel   sharing hurts (table 9); diet-abs: it helps (table 6)
#   kerple     two rates for each head of each layer (section 4)
#   fire       a function for each layer; FIRE-S shares it (section 3)
#   deberta    projections of its own for each layer (section 3.1)
#   pope       a delta for each column of each head (PoPE-pytorch)
#   linformer  one pair of E and F per layer (section 4, "headwise sharing")
DEFAULT_SHARING = {
    "shaw": "head-wise",
    "t5": "layer-wise",
    "tupe-abs": "layer-wise",
    "tupe-rel": "layer-wise",
    "diet-abs": "layer-wise",
    "diet-rel": "none",
    "linformer": "head-wise",
    "diet-abs-lin": "layer-wise",
    "kerple": "none",
    "fire": "none",
    "deberta": "none",
    "pope": "none",
}


def test_the_encodings_and_their_modes_of_sharing() -> None:
    assert NAMES.keys() == SETTLED.keys()
    for name in NAMES:
        expected = ["none", "head-wise", "layer-wise"] if name in DEFAULT_SHARING else [None]
        assert sharing_modes(name) == expected


@pytest.mark.parametrize("name", SETTLED)
def test_options_and_their_defaults(name: str) -> None:
    encoding = build_position(name)
    assert encoding.sharing == DEFAULT_SHARING.get(name)
    found = {field.name: getattr(encoding, field.name) for field in fields(encoding)}
    assert found == {"sharing": encoding.sharing, **SETTLED[name]}
    # None and False, what the command line has where nothing was said, mean the same.
    silent = dict.fromkeys(OPTIONS) | {"values": False}
    assert build_position(name, **silent) == encoding


# Where an encoding acts: rows at the input, and kinds of attention (all three where not said).
AT_THE_INPUT = {"sinusoidal", "learned", "shape", "cape", "concat", "linformer"}
SELF_ATTENTION_ALONE = {"rotary", "pope", "alibi", "kerple", "sandwich", "deberta"}
ACTS_IN: dict[str, set[str]] = {
    **{name: set() for name in ("none", *AT_THE_INPUT)},
    **{name: {ENCODER, DECODER} for name in SELF_ATTENTION_ALONE},
    "linformer": {ENCODER},
}


@pytest.mark.parametrize("name", SETTLED)
def test_where_an_encoding_acts_and_that_it_saves_nothing_but_parameters(name: str) -> None:
    added = build_position(name).input_positions(9, 12)
    assert (added is not None) == (name in AT_THE_INPUT)
    inside = {
        kind: build_position(name).attention_positions(AttentionShape(2, 3, 4, 9, 9, kind))
        for kind in KINDS
    }
    found = [kind for kind, positions in inside.items() if positions is not None]
    assert set(found) == ACTS_IN.get(name, set(KINDS))
    assert tuple(found) == NAMES[name].acts_in
    for module in (added, *inside.values()):
        if module is not None:
            assert module.state_dict().keys() == dict(module.named_parameters()).keys()


def test_every_encoding_has_its_equations_in_the_oracle() -> None:
    assert oracle.ENCODINGS.keys() == NAMES.keys()
    assert oracle.INPUTS.keys() == NAMES.keys()


def test_an_encoding_is_registered_under_its_own_name() -> None:
    assert all(encoding.name == name for name, encoding in NAMES.items())


def test_who_takes_an_option() -> None:
    for option in OPTIONS.keys() - {"sharing"}:
        assert takers(option) == {
            name: settled[option] for name, settled in SETTLED.items() if option in settled
        }
    assert takers("sharing") == DEFAULT_SHARING


def test_an_option_means_the_same_in_all_encodings() -> None:
    """A name is one option with one flag, whichever encoding takes it."""
    for encoding in NAMES.values():
        assert {**OPTIONS, **dict(options_of(encoding))} == OPTIONS
    assert len({option.flag for option in OPTIONS.values()}) == len(OPTIONS)


YARN = {"scaling": "yarn", "scaling_factor": 2.0}
NTK = {"scaling": "ntk", "scaling_factor": 2.0, "trained_length": 9}


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        (
            "diet_rel",
            {},
            "--position-encoding diet_rel: unknown; choose from alibi, cape, .*diet-rel.*tupe",
        ),
        ("diet-abs", {"rank": 0}, "--position-rank 0: must be at least 1"),
        ("diet-abs", {"rank": -1}, "--position-rank -1: must be at least 1"),
        ("diet-abs", {"rank": "2"}, "--position-rank 2: must be a whole number"),
        ("diet-abs", {"rank": 2.5}, "--position-rank 2.5: must be a whole number"),
        ("concat", {"rank": 0}, "--position-rank 0: must be at least 1"),
        ("shaw", {"clip": 0}, "--position-clip 0: must be at least 1"),
        ("t5", {"buckets": 0}, "--position-buckets 0: must be at least 1"),
        ("t5", {"buckets": 7}, "--position-buckets 7: must be even, and at least 4"),
        ("tupe-rel", {"buckets": 2}, "--position-buckets 2: must be even, and at least 4"),
        ("tupe-rel", {"max_distance": 0}, "--position-max-distance 0: must be at least 1"),
        ("t5", {"max_distance": 16}, "--position-max-distance 16: must be more than 16"),
        ("linformer", {"projected": 0}, "--linformer-k 0: must be at least 1"),
        ("diet-abs-lin", {"projected": -2}, "--linformer-k -2: must be at least 1"),
        ("diet-rel", {"sharing": "heads"}, "--position-sharing heads: choose from none, head-wise"),
        ("shape", {"shift": -1}, "--position-shift -1: must be at least 0"),
        ("cape", {"global_shift": -0.5}, "--position-global-shift -0.5: must be at least 0"),
        ("cape", {"local_shift": float("nan")}, "--position-local-shift nan: must be at least 0"),
        ("cape", {"global_scale": "x"}, "--position-global-scale x: must be a number"),
        ("cape", {"global_scale": 0.9}, "--position-global-scale 0.9: must be at least 1"),
        ("kerple", {"kernel": "exp"}, "--position-kernel exp: choose from log, power"),
        ("none", {"sharing": "head-wise"}, "--position-sharing head-wise: none has no parameters"),
        ("learned", {"sharing": "none"}, "--position-sharing none: learned has no parameters"),
        ("rotary", {"scaling": "su", "scaling_factor": 2.0}, "su: choose from linear, ntk, yarn"),
        ("rotary", {"scaling": "ntk"}, "ntk: also give --position-scaling-factor"),
        ("rotary", {"scaling_factor": 2.0}, "-factor and .*-length belong to --position-scaling"),
        ("rotary", {"scaling": "ntk", "scaling_factor": 0.5}, "-factor 0.5: must be at least 1"),
        ("rotary", YARN, "^--position-scaling yarn: also give --position-trained-length$"),
        ("rotary", NTK, "^--position-trained-length: only for --position-scaling yarn$"),
        ("rotary", {"sharing": "none"}, "--position-sharing none: rotary has no parameters"),
        ("alibi", {"sharing": "layer-wise"}, "--position-sharing layer-wise: alibi has no"),
    ],
)
def test_what_cannot_be_is_refused(name: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        build_position(name, **given)
    assert "\n" not in str(error.value)


# Options that mean nothing by themselves, and those that go with them.
WITH_OTHERS: dict[str, dict[str, Any]] = {
    "scaling": {"scaling_factor": 2.0},
    "scaling_factor": {"scaling": "linear"},
    "trained_length": {"scaling": "yarn", "scaling_factor": 2.0},
}
VALUES: dict[str, Any] = dict.fromkeys(OPTIONS, 20) | {
    "values": True,
    "kernel": "power",
    "scaling": "ntk",
}


@pytest.mark.parametrize("name", SETTLED)
def test_an_option_without_meaning_is_refused_with_who_takes_it(name: str) -> None:
    for option in OPTIONS.keys() - {"sharing"}:
        given = {option: VALUES[option], **WITH_OTHERS.get(option, {})}
        if option in SETTLED[name]:
            assert getattr(build_position(name, **given), option) == VALUES[option]
            continue
        with pytest.raises(UserError) as error:
            build_position(name, **given)
        value = VALUES[option]
        flag = OPTIONS[option].flag
        if value is not True:
            flag = f"{flag} {value}"
        assert str(error.value).startswith(
            f"{flag}: {name} has no such option; leave it out (it belongs to "
            f"{', '.join(takers(option))})"
        )


def test_all_problems_are_reported_together() -> None:
    with pytest.raises(UserError, match=r"--position-sharing x: .*; --position-rank 0: "):
        build_position("diet-abs", sharing="x", rank=0)
    with pytest.raises(UserError, match=r"--position-buckets 3: .*; --position-clip 4: "):
        build_position("t5", buckets=3, clip=4)
