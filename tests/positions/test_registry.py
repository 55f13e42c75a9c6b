"""The registry: names, options and what they refuse. What a new scheme must bring to the tests."""

from __future__ import annotations

import pytest

from diet_mt.errors import UserError
from diet_mt.positions import NAMES, SHARING, AttentionShape, build_position

from .. import oracle
from ..toy import every_encoding, sharing_modes

SHAPE = AttentionShape(2, 3, 4, 9, 11)


def test_the_encodings_and_their_modes_of_sharing() -> None:
    """Typed in: a mode refused by mistake would otherwise drop out of all tests unseen."""
    per_head = ["none", "head-wise", "layer-wise"]
    for name in ("none", "sinusoidal", "learned"):
        assert sharing_modes(name) == [None]
    for name in ("diet-rel", "diet-abs"):
        assert sharing_modes(name) == per_head


def test_every_encoding_has_its_equations_in_the_oracle() -> None:
    assert oracle.TERMS.keys() == NAMES.keys()
    assert oracle.INPUTS.keys() == NAMES.keys()


def test_an_encoding_is_registered_under_its_own_name() -> None:
    assert all(scheme.name == name for name, scheme in NAMES.items())


def test_default_sharing_is_that_of_the_paper() -> None:
    """Chen et al. 2021, table 9: sharing hurts DIET-REL, and helps DIET-ABS (table 6)."""
    assert build_position("diet-rel").sharing == "none"
    assert build_position("diet-abs").sharing == "layer-wise"


@every_encoding
def test_the_description_names_encoding_and_sharing(encoding: str, sharing: str | None) -> None:
    text = build_position(encoding, sharing=sharing).describe()
    assert text.split() == [encoding] + ([f"sharing={sharing}"] if sharing else [])


@every_encoding
def test_a_bias_is_built_with_the_sharing_asked_for(encoding: str, sharing: str | None) -> None:
    bias = build_position(encoding, sharing=sharing).attention_bias(SHAPE)
    assert (bias.sharing if bias is not None else None) == sharing
    if bias is not None:
        assert bias.shape == SHAPE
        assert f"sharing={sharing}" in repr(bias), "settings show when the module is printed"


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        (
            "diet_rel",
            {},
            "--position-encoding diet_rel: unknown; choose from .*diet-abs.*diet-rel.*sinusoidal",
        ),
        ("diet-abs", {"rank": 0}, "--position-rank 0: must be at least 1"),
        ("diet-abs", {"rank": -1}, "--position-rank -1: must be at least 1"),
        ("diet-rel", {"rank": 4}, "--position-rank 4: diet-rel has no rank"),
        ("diet-rel", {"sharing": "heads"}, "--position-sharing heads: choose from none, head-wise"),
        ("none", {"sharing": "head-wise"}, "--position-sharing head-wise: none has no parameters"),
        ("learned", {"sharing": "none"}, "--position-sharing none: learned has no parameters"),
        (
            "sinusoidal",
            {"sharing": "layer-wise"},
            "--position-sharing layer-wise: sinusoidal has no",
        ),
    ],
)
def test_what_cannot_be_is_refused(name: str, given: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        build_position(name, **given)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_two_problems_are_reported_together() -> None:
    with pytest.raises(UserError, match=r"--position-sharing x: .*; --position-rank 0: "):
        build_position("diet-abs", sharing="x", rank=0)


def test_the_modes_of_sharing() -> None:
    assert SHARING == ("none", "head-wise", "layer-wise")
