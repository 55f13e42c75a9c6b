"""Values by hand, and properties of every encoding: windows, shifts, precision, gradients."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from diet_mt.positions import (
    CROSS,
    AttentionPositions,
    AttentionShape,
    InputPositions,
    PositionRange,
    PositionTerms,
    build_position,
    create,
)
from diet_mt.positions.relative import RelativeBias
from diet_mt.system.errors import UserError

from ..toy import CASES as WITH_SHARING
from ..toy import encoding_of, name_of, options_by_field
from .cases import ALL, CASES, Hand

L, H, D, N_T, N_S = 2, 3, 4, 9, 11
ROUNDING = 1e-12  # float64
PRECISE = (torch.float32, torch.float64, torch.complex64)  # complex64 has two numbers of float32

# (encoding, sharing, kind) wherever an encoding acts inside attention.
INSIDE = [
    pytest.param(encoding, sharing, kind, id=f"{name_of(encoding, sharing)}-{kind}")
    for encoding, sharing in WITH_SHARING
    for kind in ALL[encoding].acts_in
]
inside = pytest.mark.parametrize(("encoding", "sharing", "kind"), INSIDE)


def module_of(encoding: str, sharing: str | None, kind: str) -> AttentionPositions:
    """All layers, with tables large enough to be seen."""
    known = options_by_field(encoding) | {"kind": kind, "sharing": sharing}
    known.pop("shared_projections", None)  # those of a model
    sizes = {"layers": L, "max_length": N_T, "max_keys": N_S if kind == CROSS else N_T}
    positions = create(encoding_of(encoding), heads=H, head_dim=D, **sizes, **known)
    for parameter in positions.parameters():
        nn.init.normal_(parameter, std=0.7)
    return positions


def fields_of(terms: PositionTerms) -> dict[str, Tensor]:
    """The tensors that an encoding gives to one layer, by name."""
    return {name: value for name, value in vars(terms).items() if isinstance(value, Tensor)}


def logits(
    positions: AttentionPositions,
    queries: PositionRange,
    keys: PositionRange,
    q: Tensor,
    k: Tensor,
    scale: float = 1.0,
) -> Tensor:
    """The logits of all layers, (L, B, H, T, S), for projected ``q`` (B, H, T, D) and ``k`` (B, H,
    S, D).
    """
    # Keys are rotated at their own positions, which are no queries' in cross-attention.
    at = queries if positions.shape.kind == CROSS else keys
    both = zip(positions.for_layers(queries, keys), positions.for_layers(at, keys), strict=True)
    return torch.stack([of_layer(terms, own.keys(k, None), q, scale) for terms, own in both])


def of_layer(terms: PositionTerms, keys: Tensor, q: Tensor, scale: float) -> Tensor:
    queries = terms.queries(q)
    total = queries @ keys.transpose(-1, -2) * scale
    bias = terms.logit_bias(queries, keys, scale)
    return total if bias is None else total + bias


def content(batch: int, queries: int, keys: int) -> tuple[Tensor, Tensor]:
    """Random projections, (B, H, T, D) and (B, H, S, D)."""
    q, k = (torch.randn(batch, H, size, D, dtype=torch.float64) for size in (queries, keys))
    return q, k


def fill(module: nn.Module, tables: dict[str, Any]) -> None:
    for name, values in tables.items():
        path = name if name in dict(module.named_parameters()) else f"layers.0.{name}"
        module.get_parameter(path).data.copy_(torch.tensor(values, dtype=torch.float64))


HANDS = [
    pytest.param(name, hand, id=f"{name}-{number}")
    for name, case in CASES.items()
    for number, hand in enumerate(case.hand)
]


@pytest.mark.parametrize(("encoding", "hand"), [case for case in HANDS if case.values[1].logits])
def test_logits_by_hand(encoding: str, hand: Hand) -> None:
    """All of them, and those of the last query alone."""
    expected = torch.tensor(hand.logits, dtype=torch.float64)
    heads, queries, columns = expected.shape
    keys = hand.longest or columns
    shape = AttentionShape(1, heads, hand.head_dim, queries, keys, hand.kind)
    sharing = None if CASES[encoding].sharing is None else "none"
    built = build_position(encoding, sharing=sharing, **hand.options)
    positions = built.attention_positions(shape)
    assert positions is not None
    positions.double()
    fill(positions, hand.tables)
    q = torch.full((1, heads, queries, hand.head_dim), hand.q).double()
    k = torch.tensor(hand.k).double().reshape(-1, 1).expand(1, heads, keys, hand.head_dim).clone()
    for start in (0, queries - 1):
        actual = logits(positions, range(start, queries), range(keys), q[:, :, start:], k)
        torch.testing.assert_close(actual[0, 0], expected[:, start:], rtol=0, atol=hand.tolerance)


@pytest.mark.parametrize(("encoding", "hand"), [case for case in HANDS if case.values[1].rows])
def test_rows_at_the_input_by_hand(encoding: str, hand: Hand) -> None:
    expected = torch.tensor(hand.rows)
    length, width = expected.shape
    added = build_position(encoding, **hand.options).input_positions(length, width)
    assert added is not None
    fill(added.eval(), hand.tables)
    tokens = torch.zeros(2, length, dtype=torch.long)
    for start in (0, length - 1):
        actual = added(tokens[:, start:], range(start, length))
        torch.testing.assert_close(actual[0], expected[start:], rtol=0, atol=hand.tolerance)


@inside
def test_a_window_is_part_of_the_whole(encoding: str, sharing: str | None, kind: str) -> None:
    """Also where all keys stand before the query, as in a decoding step."""
    positions = module_of(encoding, sharing, kind).double()
    keys = positions.shape.max_keys
    q, k = content(2, N_T, keys)
    whole = logits(positions, range(N_T), range(keys), q, k, scale=0.3)
    mixes = positions.for_layers(range(1), range(keys))[0].mixes_keys
    weights = torch.rand(2, H, N_T, keys, dtype=torch.float64)
    for start, stop, seen in ((2, 5, keys), (8, 9, 9), (8, 9, 3), (4, 9, 2)):
        seen = keys if mixes else seen
        at = range(start, stop), range(seen)
        both = zip(positions.for_layers(range(N_T), at[1]), positions.for_layers(*at), strict=True)
        for of_whole, of_window in both:
            added = of_whole.output(weights[..., :seen])
            expected = None if added is None else added[:, :, start:stop]
            actual = of_window.output(weights[:, :, start:stop, :seen])
            torch.testing.assert_close(actual, expected, rtol=0, atol=ROUNDING)
        rows = q[:, :, start:stop]
        actual = logits(positions, range(start, stop), range(seen), rows, k[:, :, :seen], scale=0.3)
        expected = whole[..., start:stop, :] if mixes else whole[..., start:stop, :seen]
        torch.testing.assert_close(actual, expected, rtol=0, atol=ROUNDING)


@inside
def test_score_mods_add_a_bias_by_distance(encoding: str, sharing: str | None, kind: str) -> None:
    """At consecutive positions and at others."""
    positions = module_of(encoding, sharing, kind).double()
    relative = isinstance(positions, RelativeBias)
    index = torch.meshgrid(*map(torch.arange, (H, 5, 8)), indexing="ij")
    score, b, later = torch.randn(H, 5, 8), torch.tensor(0), torch.tensor([0, 1, 3, 6, 8])
    for at in ((range(2, 7), range(8)), (later, torch.arange(1, 9))):
        if not relative:
            with pytest.raises(NotImplementedError):
                positions.score_mods(*at)
            continue
        both = zip(positions.score_mods(*at), positions.for_layers(*at), strict=True)
        for score_mod, terms in both:
            assert torch.equal(score_mod(score, b, *index), score + terms.bias)
    if relative and positions.limited:
        with pytest.raises(UserError, match=f"{N_T + 1} tokens"):
            positions.score_mods(range(N_T + 1), range(1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["fp16", "bf16"])
@inside
def test_half_precision_rounds_the_weights_alone(
    encoding: str, sharing: str | None, kind: str, dtype: torch.dtype
) -> None:
    """Positions beyond 2048 and 256 are not rounded, and sums are those of float32; so are those of
    a model in float32 under autocast.
    """
    half = module_of(encoding, sharing, kind).to(dtype)
    full = copy.deepcopy(half).float()
    last = 3000 if not half.limited else N_T - 1
    at = range(last, last + 1), range(last + 1)
    with torch.autocast("cpu", torch.bfloat16):
        cast = full.for_layers(*at)
    for terms in (half.for_layers(*at), cast):
        for own, expected in zip(terms, full.for_layers(*at), strict=True):
            actual, exact = fields_of(own), fields_of(expected)
            assert actual.keys() == exact.keys()
            for name, value in actual.items():
                assert value.dtype in (*PRECISE, torch.long)
                assert torch.equal(value, exact[name]), name
    q, k = (x.to(dtype) for x in content(1, 1, last + 1))
    terms = half.for_layers(*at)[0]
    assert terms.queries(q).dtype == terms.keys(k, None).dtype == terms.values(k, None).dtype
    bias = terms.query_bias(q, last + 1, 1.0)
    added = terms.output(torch.rand(1, H, 1, last + 1).to(dtype))
    assert {each.dtype for each in (bias, added) if each is not None} <= {dtype}


@pytest.mark.parametrize("encoding", CASES)
def test_sentences_longer_than_the_tables(encoding: str) -> None:
    """Refused by default where there are tables."""
    built = build_position(encoding)
    added = built.input_positions(4, 16)
    if added is not None:
        with pytest.raises(UserError, match=r"5 tokens.* 4 positions.*--beyond-table"):
            added.rows(range(4, 5))
    for kind in built.acts_in:
        positions = built.attention_positions(AttentionShape(L, H, D, 4, 6, kind))
        assert positions is not None
        assert positions.limited == CASES[encoding].limited
        for at in ((range(4, 5), range(3)), (range(3), range(7))):
            if positions.limited:
                with pytest.raises(UserError, match=r"(5|7) tokens.* (4|6) positions"):
                    positions.for_layers(*at)
            else:
                assert len(positions.for_layers(*at)) == L


@pytest.mark.parametrize("encoding", CASES)
def test_initial_values(encoding: str) -> None:
    built = build_position(encoding)
    shape = AttentionShape(1, 8, 32, 128, 128)
    modules: list[InputPositions | AttentionPositions | None] = [
        built.input_positions(128, 256),
        built.attention_positions(shape),
    ]
    parameters = {
        name: value for module in modules if module for name, value in module.named_parameters()
    }
    for name, std in CASES[encoding].initial.items():
        drawn = [value for path, value in parameters.items() if path.endswith(name)]
        assert drawn, name
        for values in drawn:
            # Five deviations of the standard deviation of so many draws.
            limit = 5 / math.sqrt(2 * values.numel())
            assert values.std().item() == pytest.approx(std(256, 32), rel=limit), name
            assert abs(values.mean().item()) <= limit * 2 * std(256, 32)
