"""Frequencies of rotary encodings and their scaling."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from diet_mt.positions import AttentionShape
from diet_mt.positions.rotary import Rotary, RotaryPositions, RotaryTerms

from ..toy import build, collate, sources, targets

ROUNDING = 1e-14  # float64, frequencies up to 1
SCALINGS: dict[str, dict[str, Any]] = {
    "linear": {"scaling": "linear", "scaling_factor": 4.0},
    "ntk": {"scaling": "ntk", "scaling_factor": 4.0},
    "dynamic": {"scaling": "dynamic", "scaling_factor": 4.0, "trained_length": 4},
    "yarn": {"scaling": "yarn", "scaling_factor": 4.0, "trained_length": 64},
    "llama3": {"scaling": "llama3", "scaling_factor": 4.0, "trained_length": 64},
    "longrope": {
        "scaling": "longrope",
        "scaling_factor": 4.0,
        "trained_length": 64,
        "pair_factors": "1, 1.5, 2.5, 4",
    },
}


@pytest.mark.parametrize("scaling", SCALINGS)
def test_angles_and_lengths_of_queries_and_keys(scaling: str) -> None:
    """With YaRN and LongRoPE both are longer, and so the logits by the square."""
    rotary = Rotary(**SCALINGS[scaling])
    positions = RotaryPositions(AttentionShape(1, 1, 8, 9, 9), rotary).double()
    assert f"scaling={scaling!r}" in repr(positions)
    (terms,) = positions.for_layers(range(3, 5), range(5))
    assert isinstance(terms, RotaryTerms)
    # The square root of 1 + ln 4 / ln 64 is that of 4/3.
    longer = {"yarn": 0.1 * math.log(4) + 1, "longrope": (4 / 3) ** 0.5}.get(scaling, 1.0)
    at = torch.tensor([3, 4])
    angle = at[:, None] * rotary.frequencies(8, at)
    expected = torch.complex(angle.cos(), angle.sin()) * longer
    torch.testing.assert_close(terms.rotation, expected, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("places", [None, "encoder"])
def test_a_model_trained_without_scaling_continues_with_it(places: str | None) -> None:
    options = {
        "position_in": places,
        "position_scaling": "yarn",
        "position_scaling_factor": 2.0,
        "position_trained_length": 7,
    }
    plain = build("rotary", position_in=places).eval()
    scaled = build("rotary", seed=2, **options).eval()
    scaled.load_state_dict(plain.state_dict())
    described = "rotary scaling=yarn scaling-factor=2.0 trained-length=7"
    where = " in=encoder" if places else ""
    assert scaled.signature == f"{described}{where} scale=head"
    batch = collate(sources(), "left"), None, collate(targets())
    assert not torch.allclose(scaled(*batch)[0], plain(*batch)[0])
    again = build("rotary", seed=3, **options).eval()
    again.load_state_dict(scaled.state_dict())
    assert torch.equal(again(*batch)[0], scaled(*batch)[0])
    # Not the other way round: it may have been trained with it.
    with pytest.raises(Exception, match="rotary scaling=yarn"):
        plain.load_state_dict(scaled.state_dict())
