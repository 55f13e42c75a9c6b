"""Rotary and PoPE: frequencies and their scaling, rotations, polar coordinates."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from diet_mt.positions import AttentionShape
from diet_mt.positions.pope import PopePositions
from diet_mt.positions.rotary import Rotary, RotaryPositions, RotaryTerms, rotate
from diet_mt.system.errors import UserError

from ..toy import build, collate, sources, targets

B, H, T, D = 2, 3, 5, 6
SHAPE = AttentionShape(2, H, D, 9, 11)
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
any_scaling = pytest.mark.parametrize("scaling", SCALINGS)


AT = torch.arange(1)


def speeds(head_dim: int, scaling: str = "", factor: float = 1.0, length: int = 64) -> list[float]:
    options = {**SCALINGS[scaling], "scaling_factor": factor} if scaling else {}
    options |= {"trained_length": length} if "trained_length" in options else {}
    frequencies: list[float] = Rotary(**options).frequencies(head_dim, AT)[0].tolist()
    return frequencies


def test_head_size_4_by_hand() -> None:
    """Two pairs, 1 and 1/100."""
    assert speeds(4) == pytest.approx([1, 0.01], abs=ROUNDING)
    assert speeds(4, "linear", 8.0) == pytest.approx([0.125, 0.00125], abs=ROUNDING)
    # The base is 10000 * 8^2, its root 800.
    assert speeds(4, "ntk", 8.0) == pytest.approx([1, 0.00125], abs=ROUNDING)
    # In 16 tokens the first pair turns 2.55 times, between 4 and 1: 1.55 of 3 parts unchanged.
    share = (4 - 16 / (2 * math.pi)) / 3
    assert speeds(4, "llama3", 8.0, 16) == pytest.approx([1 - share * 7 / 8, 0.00125], abs=1e-14)
    # In 64 tokens the first pair turns 10.2 times, between 32 and 1; the second 0.1 times. The ramp
    # goes from below the first (0) to behind the second: 4 log(64 / 2 pi) / (2 log 10000) = 0.504,
    # rounded up to 1.
    assert speeds(4, "yarn", 8.0, 64) == pytest.approx([1, 0.00125], abs=ROUNDING)


@pytest.mark.parametrize("head_dim", [2, 4, 8, 64, 128])
@pytest.mark.parametrize("factor", [1.0, 2.0, 7.5])
def test_every_pair_by_its_formula(head_dim: int, factor: float) -> None:
    base = 10000 * factor ** (head_dim / max(head_dim - 2, 1))
    plain = [10000 ** (-2 * pair / head_dim) for pair in range(head_dim // 2)]
    stretched = [base ** (-2 * pair / head_dim) for pair in range(head_dim // 2)]
    assert speeds(head_dim) == pytest.approx(plain, rel=1e-13)
    assert speeds(head_dim, "linear", factor) == pytest.approx(
        [frequency / factor for frequency in plain], rel=1e-13
    )
    assert speeds(head_dim, "ntk", factor) == pytest.approx(stretched, rel=1e-13)
    if head_dim > 2:  # the first pair is kept, and the last interpolated
        assert stretched[0] == 1
        assert stretched[-1] == pytest.approx(plain[-1] / factor, rel=1e-13)


@pytest.mark.parametrize("length", [16, 100, 1024, 4096])
@pytest.mark.parametrize("head_dim", [8, 64, 128])
def test_yarn_by_how_often_a_pair_turns_in_training(head_dim: int, length: int) -> None:
    """More than 32 times: unchanged; less than once: the whole factor; a ramp of pairs between."""
    plain, slowed = speeds(head_dim), speeds(head_dim, "yarn", 4.0, length)
    turns = [length * frequency / (2 * math.pi) for frequency in plain]
    shares = [(a - b) / (a - a / 4) for a, b in zip(plain, slowed, strict=True)]
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


@any_scaling
def test_angles_and_lengths_of_queries_and_keys(scaling: str) -> None:
    """With YaRN and LongRoPE both are longer, and so the logits by the square; a factor of 1
    changes nothing.
    """
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
    if scaling != "longrope":
        assert speeds(8, scaling, 1.0) == pytest.approx(speeds(8), rel=1e-14)
    assert Rotary(**{**SCALINGS[scaling], "scaling_factor": 1.0}).attention_factor() == 1


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


def test_a_quarter_turn_by_hand() -> None:
    """(x, y) becomes (-y, x); the two pairs of a row turn each by itself."""
    x = torch.tensor([[[[1.0, 2, 3, 4]]]])
    assert rotate(x, torch.tensor([[1j, 1]])).tolist() == [[[[-2, 1, 3, 4]]]]


def rotary(start: int) -> RotaryTerms:
    positions = RotaryPositions(SHAPE, Rotary()).double()
    terms = positions.for_layers(range(start, start + T), range(start + T))[1]
    assert isinstance(terms, RotaryTerms)
    return terms


def scores(start: int, q: Tensor, k: Tensor) -> Tensor:
    return rotary(start).queries(q) @ rotary(start).keys(k, None).transpose(-1, -2)


def test_products_depend_on_the_distance_alone() -> None:
    q, k = torch.randn(2, B, H, T, D, dtype=torch.float64)
    torch.testing.assert_close(scores(1000, q, k), scores(0, q, k), rtol=0, atol=1e-10)
    # Equal words at every position: each diagonal holds one number, and no two diagonals the same.
    same = scores(0, q[:, :, :1].expand_as(q), k[:, :, :1].expand_as(k))[0, 0]
    diagonals = [same.diagonal(number) for number in range(1 - T, T)]
    for diagonal in diagonals:
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=0, atol=1e-12)
    assert len({round(diagonal[0].item(), 9) for diagonal in diagonals}) == 2 * T - 1


def test_rotation_keeps_lengths_and_values() -> None:
    x = torch.randn(B, H, T, D, dtype=torch.float64)
    torch.testing.assert_close(rotary(7).queries(x).norm(dim=-1), x.norm(dim=-1))
    assert rotary(7).values(x, None) is x


def test_an_odd_head_size() -> None:
    with pytest.raises(UserError, match=r"size of 5;.*--\*-attention-heads"):
        Rotary().attention_positions(AttentionShape(2, H, 5, 9, 11))


def products(start: int, phase: float, q: Tensor, k: Tensor) -> Tensor:
    """The logits of PoPE over 6 positions, (B, H, T, S)."""
    positions = PopePositions(AttentionShape(1, 2, 4, 9, 9), "none").double()
    torch.nn.init.constant_(next(positions.parameters()), phase)
    (terms,) = positions.for_layers(range(start, start + 6), range(start + 6))
    return terms.queries(q) @ terms.keys(k, None).transpose(-1, -2)


def test_phases_are_clamped_to_a_turn() -> None:
    words = torch.randn(1, 2, 6, 4, dtype=torch.float64)
    for phase, clamped in ((0.7, 0.0), (-9.0, -2 * math.pi)):
        expected = products(2, clamped, words, words)
        torch.testing.assert_close(products(2, phase, words, words), expected)


def test_words_have_no_angle() -> None:
    """Whatever the words, the sign of a column's product is that of its cosine."""
    for column in range(4):
        q, k = torch.randn(2, 5, 2, 6, 4, dtype=torch.float64)
        q[..., [c for c in range(4) if c != column]] = -torch.inf  # a length of 0
        away = torch.arange(6) - torch.arange(6)[:, None]
        expected = torch.cos(away * 10000.0 ** (-column / 4)).sign()
        assert torch.equal(products(0, 0.0, q, k).sign(), expected.expand(5, 2, 6, 6))
