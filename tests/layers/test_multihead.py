"""The attention module by itself: against fairseq's, with mixed keys, and with a cache."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor

from diet_mt.layers.call import AttentionCall
from diet_mt.layers.multihead import PositionalAttention
from diet_mt.positions import LayerPositions

B, H, T, S, D = 2, 3, 5, 7, 4
E, E_SOURCE = H * D, 10
ROUNDING = 1e-12  # float64

SELF: dict[str, Any] = {"self_attention": True}
CROSS: dict[str, Any] = {"encoder_decoder_attention": True, "kdim": E_SOURCE, "vdim": E_SOURCE}


def module(**kind: Any) -> PositionalAttention:
    torch.manual_seed(1)
    built = PositionalAttention(E, H, scale=D**-0.5, **kind).double()
    for name, parameter in built.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)  # fairseq starts some of them at 0
    return built


def close(found: Tensor | None, expected: Tensor | None) -> None:
    assert found is not None
    assert expected is not None
    assert found.shape == expected.shape
    torch.testing.assert_close(found, expected, rtol=0, atol=ROUNDING)


def inputs(kind: dict[str, Any]) -> tuple[Tensor, Tensor | None, int]:
    """Query (T, B, E), source (S, B, E') or None, and how many keys there are."""
    query = torch.randn(T, B, E, dtype=torch.float64)
    if kind is SELF:
        return query, None, T
    return query, torch.randn(S, B, E_SOURCE, dtype=torch.float64), S


def by_head(attention: PositionalAttention, query: Tensor, source: Any, **call: Any) -> Tensor:
    """The weights (B, H, T, S)."""
    weights = attention(query, source, AttentionCall(need_weights=True, **call))[1]
    assert weights is not None
    return weights


@pytest.fixture(params=[SELF, CROSS], ids=["self", "cross"])
def kind(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.param
    return found


def test_weights_and_their_initial_values_are_fairseqs(kind: dict[str, Any]) -> None:
    torch.manual_seed(1)
    ours = PositionalAttention(E, H, scale=D**-0.5, **kind).state_dict()
    torch.manual_seed(1)
    theirs = MultiheadAttention(E, H, **kind).state_dict()
    assert list(ours) == list(theirs)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("kind", "causal"), [(SELF, False), (SELF, True), (CROSS, False)])
def test_without_positions_it_is_fairseqs_attention(
    kind: dict[str, Any], masked: bool, causal: bool
) -> None:
    ours = module(**kind)
    theirs = MultiheadAttention(E, H, **kind).double()
    theirs.load_state_dict(ours.state_dict())
    query, source, keys = inputs(kind)
    padding = None
    if masked:
        padding = torch.zeros(B, keys, dtype=torch.bool)
        padding[1, -2:] = True
    found, weights = ours(query, source, AttentionCall(padding=padding, causal=causal))
    assert weights is None
    weights = by_head(ours, query, source, padding=padding, causal=causal)
    given = query if source is None else source
    future = torch.ones(T, T, dtype=torch.bool).triu(1) if causal else None
    expected, expected_weights = theirs(
        query,
        given,
        given,
        key_padding_mask=padding,
        attn_mask=future,
        static_kv=kind is CROSS,
    )
    # fairseq takes the softmax of float64 logits in float32: shares are off by up to 6e-8.
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-6)
    expected_weights = expected_weights.double()  # (B, T, S), the mean over the heads
    torch.testing.assert_close(weights.mean(1), expected_weights, rtol=0, atol=2e-7)


class Loud(LayerPositions):
    """Says what it was given."""

    def keys(self, k: Tensor, padding: Tensor | None) -> Tensor:
        return 2 * k if padding is None else k.masked_fill(padding[:, None, :, None], 0.0)

    def values(self, v: Tensor, padding: Tensor | None) -> Tensor:
        return v + 1


class Mixed(Loud):
    mixes_keys = True


def test_mixed_keys_are_given_the_padding_and_never_masked(kind: dict[str, Any]) -> None:
    attention = module(**kind)
    query, source, keys = inputs(kind)
    padding = torch.zeros(B, keys, dtype=torch.bool)
    padding[0, 3:] = True
    masked = by_head(attention, query, source, positions=Loud(), padding=padding)
    mixed = by_head(attention, query, source, positions=Mixed(), padding=padding)
    assert not masked[0, ..., 3:].any()
    assert mixed[0, ..., 3:].all()
    # Keys that were set to 0 have the logit 0, all alike.
    close(mixed[0, ..., 3:], mixed[0, ..., 3:4].expand(-1, -1, keys - 3))


class Kept:
    """A cache that has found what it is told, whatever the query."""

    def __init__(self, found: Tensor, weights: Tensor) -> None:
        self.told = found, weights
        self.asked: list[tuple[Tensor, AttentionCall]] = []

    def attend(self, query: Tensor, call: AttentionCall) -> tuple[Tensor, Tensor]:
        self.asked.append((query, call))
        return self.told


@torch.no_grad()
@pytest.mark.parametrize("need_weights", [False, True])
def test_a_cache_attends_in_the_place_of_the_module(
    kind: dict[str, Any], need_weights: bool
) -> None:
    """The source is not read then; what is found goes through the output projection."""
    attention = module(**kind).eval()
    query, _, _ = inputs(kind)
    kept = Kept(torch.randn(B, H, 1, D).double(), torch.rand(B, H, 1, S).double())
    call = AttentionCall(LayerPositions(), cache=kept, need_weights=need_weights)
    found, weights = attention(query[-1:], None, call)
    close(found[0], attention.out_proj(kept.told[0].flatten(1)))
    assert weights is (kept.told[1] if need_weights else None)
    ((asked, given),) = kept.asked
    assert torch.equal(asked, query[-1])
    assert given is call
