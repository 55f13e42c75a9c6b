"""How fast pairs turn: position interpolation, NTK, YaRN."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch

from diet_mt.positions import AttentionShape
from diet_mt.positions.frequencies import Scaling
from diet_mt.positions.rotary import Rotary, RotaryLayer, RotaryPositions

from ..toy import build, collate, sources, targets
from .one_layer import part_of

ROUNDING = 1e-14  # float64, speeds up to 1


def speeds(head_dim: int, *scaling: object) -> list[float]:
    found: list[float] = Scaling(*scaling).speeds(head_dim).tolist()  # type: ignore[arg-type]
    return found


def test_head_size_4_by_hand() -> None:
    """Two pairs, 1 and 1/100."""
    assert speeds(4) == pytest.approx([1, 0.01], abs=ROUNDING)
    assert speeds(4, "linear", 8.0) == pytest.approx([0.125, 0.00125], abs=ROUNDING)
    # The base is 10000 * 8^2, its root 800.
    assert speeds(4, "ntk", 8.0) == pytest.approx([1, 0.00125], abs=ROUNDING)
    # In 64 tokens the first pair turns 10.2 times, between 32 and 1; the second 0.1 times. The ramp
    # goes from below the first (0) to behind the second: 4 log(64 / 2 pi) / (2 log 10000) = 0.504,
    # rounded up to 1.
    assert speeds(4, "yarn", 8.0, 64) == pytest.approx([1, 0.00125], abs=ROUNDING)


@pytest.mark.parametrize("head_dim", [2, 4, 8, 64, 128])
@pytest.mark.parametrize("factor", [1.0, 2.0, 7.5])
def test_every_pair_by_its_formula(head_dim: int, factor: float) -> None:
    for pair in range(head_dim // 2):
        plain = 10000 ** (-2 * pair / head_dim)
        assert speeds(head_dim)[pair] == pytest.approx(plain, rel=1e-13)
        assert speeds(head_dim, "linear", factor)[pair] == pytest.approx(plain / factor, rel=1e-13)
        base = 10000 * factor ** (head_dim / max(head_dim - 2, 1))
        found = speeds(head_dim, "ntk", factor)[pair]
        assert found == pytest.approx(base ** (-2 * pair / head_dim), rel=1e-13)


def test_ntk_keeps_the_first_pair_and_interpolates_the_last() -> None:
    found = speeds(64, "ntk", 4.0)
    assert found[0] == 1
    assert found[-1] == pytest.approx(10000 ** (-62 / 64) / 4, rel=1e-13)


@pytest.mark.parametrize("length", [16, 100, 1024, 4096])
@pytest.mark.parametrize("head_dim", [8, 64, 128])
def test_yarn_by_how_often_a_pair_turns_in_training(head_dim: int, length: int) -> None:
    """More than 32 times: as ever; less than once: slowed by all of it; a ramp of pairs between."""
    plain, found = speeds(head_dim), speeds(head_dim, "yarn", 4.0, length)
    turns = [length * speed / (2 * math.pi) for speed in plain]
    shares = [(a - b) / (a - a / 4) for a, b in zip(plain, found, strict=True)]
    assert shares == sorted(shares)
    for number, share in enumerate(shares):
        after = turns[number + 1] if number + 1 < len(turns) else 0.0
        before = turns[number - 1] if number else math.inf
        if after > 32:  # the ramp begins at a whole pair, at most one too early
            assert share == pytest.approx(0, abs=1e-12)
        if before < 1:  # and ends at one, at most one too late
            assert share == pytest.approx(1, abs=1e-12)
    if turns[-1] < 32 < turns[0]:
        steps = [b - a for a, b in pairwise(shares) if a > 0 and b < 1]
        assert steps == pytest.approx(steps[:1] * len(steps), abs=1e-12), "the ramp is straight"


@pytest.mark.parametrize("scaling", ["linear", "ntk", "yarn"])
def test_angles_and_lengths_of_queries_and_keys(scaling: str) -> None:
    """With YaRN both are longer, and so the logits by the square."""
    given = Scaling(scaling, 4.0, 64)
    positions = RotaryPositions(AttentionShape(1, 1, 8, 9, 9), given).double()
    found = part_of(positions, 0, 3, 2, 5)
    assert isinstance(found, RotaryLayer)
    assert found.turn is not None
    longer = 0.1 * math.log(4) + 1 if scaling == "yarn" else 1.0
    for row, position in enumerate((3, 4)):
        for pair, speed in enumerate(given.speeds(8).tolist()):
            for table, function in ((found.turn.real, math.cos), (found.turn.imag, math.sin)):
                expected = longer * function(position * speed)
                assert table[row, pair].item() == pytest.approx(expected, abs=ROUNDING)


@pytest.mark.parametrize("scaling", ["linear", "ntk", "yarn"])
def test_a_factor_of_1_changes_nothing(scaling: str) -> None:
    assert speeds(16, scaling, 1.0, 64) == pytest.approx(speeds(16), rel=1e-14)
    assert Scaling(scaling, 1.0, 64).attention_factor() == 1


@pytest.mark.parametrize("places", [None, "encoder"])
def test_a_model_trained_without_goes_on_with_it(places: str | None) -> None:
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
    with pytest.raises(Exception, match="trained with positions 'rotary scaling=yarn"):
        plain.load_state_dict(scaled.state_dict())


def test_settings_show_when_printed() -> None:
    shape = AttentionShape(1, 2, 8, 9, 9)
    positions = Rotary(scaling="ntk", scaling_factor=2.0).attention_positions(shape)
    assert "scaling='ntk', factor=2.0" in repr(positions)
