"""The attention module by itself: fairseq's calling form, weights and caches."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor

from diet_mt.layers.multihead import PositionalAttention

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


def inputs(kind: dict[str, Any]) -> tuple[Tensor, Tensor]:
    query = torch.randn(T, B, E, dtype=torch.float64)
    return query, query if kind is SELF else torch.randn(S, B, E_SOURCE, dtype=torch.float64)


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
def test_without_a_term_it_is_fairseqs_attention(kind: dict[str, Any], masked: bool) -> None:
    ours = module(**kind)
    theirs = MultiheadAttention(E, H, **kind).double()
    theirs.load_state_dict(ours.state_dict())
    query, source = inputs(kind)
    padding = None
    if masked:
        padding = torch.zeros(B, source.size(0), dtype=torch.bool)
        padding[1, -2:] = True
    call = {"key_padding_mask": padding, "static_kv": kind is CROSS}
    found, weights = ours(query, source, source, **call)
    expected, expected_weights = theirs(query, source, source, **call)
    # fairseq takes the softmax of float64 logits in float32: shares are off by up to 6e-8.
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-6)
    torch.testing.assert_close(weights, expected_weights.double(), rtol=0, atol=2e-7)


def test_what_is_returned_and_its_shapes(kind: dict[str, Any]) -> None:
    attention = module(**kind)
    query, source = inputs(kind)
    keys = source.size(0)
    plain, nothing = attention(query, source, source, need_weights=False)
    assert plain.shape == (T, B, E)
    assert nothing is None
    out, by_head = attention(query, source, source, need_weights=False, need_head_weights=True)
    close(out, plain)
    assert by_head.shape == (H, B, T, keys)
    out, mean = attention(query, source, source)
    close(out, plain)
    assert mean.shape == (B, T, keys)
    close(mean, by_head.mean(0))


@pytest.mark.parametrize(
    "offsets", [(B, H, T), (1, H, T), (1, 1, T), (B, 1, 1), (B, H, 1)], ids=str
)
def test_offsets_of_any_shape_are_added(kind: dict[str, Any], offsets: tuple[int, ...]) -> None:
    """Checked through log-weights: they differ by the offsets, up to one number per row."""
    attention = module(**kind)
    query, source = inputs(kind)
    added = torch.randn(*offsets, source.size(0), dtype=torch.float64)
    _, plain = attention(query, source, source, need_head_weights=True)
    _, moved = attention(query, source, source, added, need_head_weights=True)
    difference = (moved.log() - plain.log()).transpose(0, 1)  # (B, H, T, S)
    expected = added.expand_as(difference)
    close(difference - difference[..., :1], expected - expected[..., :1])


def test_a_bool_mask_and_a_mask_of_offsets_say_the_same(kind: dict[str, Any]) -> None:
    attention = module(**kind)
    query, source = inputs(kind)
    padding = torch.zeros(B, source.size(0), dtype=torch.bool)
    padding[0, 3:] = True
    added = torch.zeros(B, 1, 1, source.size(0), dtype=torch.float64)
    added[0, ..., 3:] = -math.inf
    close(
        attention(query, source, source, padding)[0],
        attention(query, source, source, added)[0],
    )


def test_an_attention_mask_adds_to_the_offsets() -> None:
    attention = module(**SELF)
    query, _ = inputs(SELF)
    added = torch.randn(B, H, T, T, dtype=torch.float64)
    future = torch.full((T, T), -math.inf, dtype=torch.float64).triu(1)
    expected, _ = attention(query, query, query, added + future)
    close(attention(query, query, query, added, attn_mask=future)[0], expected)
    expected, _ = attention(query, query, query, future[None, None])
    close(attention(query, query, query, attn_mask=future)[0], expected)


def test_beams_of_a_sentence_read_the_same_keys() -> None:
    """Four rows over two sentences equal four rows over the sentences written out."""
    attention = module(**CROSS).eval()
    query = torch.randn(1, 2 * B, E, dtype=torch.float64)
    source = torch.randn(S, B, E_SOURCE, dtype=torch.float64)
    added = torch.randn(B, H, 1, S, dtype=torch.float64)
    found, weights = attention(query, source, source, added, need_head_weights=True)
    each = torch.tensor([0, 0, 1, 1])
    expected, by_row = attention(
        query, source[:, each], source[:, each], added[each], need_head_weights=True
    )
    close(found, expected)
    close(weights, by_row)


def test_the_logits_are_not_kept() -> None:
    attention = module(**SELF)
    query, _ = inputs(SELF)
    with pytest.raises(NotImplementedError, match="before_softmax"):
        attention(query, query, query, before_softmax=True)


@torch.no_grad()
def test_the_cache_grows_with_self_attention_and_stands_with_cross_attention() -> None:
    own, cross = module(**SELF).eval(), module(**CROSS).eval()
    query = torch.randn(T, B, E, dtype=torch.float64)
    source = torch.randn(S, B, E_SOURCE, dtype=torch.float64)
    state: dict[str, Any] = {}
    assert own.cached_rows(state) == cross.cached_rows(state) == 0
    for t in range(T):
        step = query[t : t + 1]
        _, seen = own(step, step, step, incremental_state=state)
        assert seen.shape == (B, 1, t + 1)
        # From the second step on the keys come from the cache: what is passed is not read.
        given = source if t == 0 else torch.full_like(source, math.nan)
        out, seen = cross(step, given, given, incremental_state=state, static_kv=True)
        assert seen.shape == (B, 1, S)
        close(out, cross(step, source, source)[0])
    assert own.cached_rows(state) == cross.cached_rows(state) == B


@torch.no_grad()
def test_the_cache_moves_as_it_is_told() -> None:
    attention = module(**SELF).eval()
    query = torch.randn(3, 4, E, dtype=torch.float64)
    order = torch.tensor([2, 2, 0, 3, 1])
    state: dict[str, Any] = {}
    for t in range(2):
        attention(query[t : t + 1], None, None, incremental_state=state)
    attention.reorder_cache(state, None)  # nothing moves
    assert attention.reorder_incremental_state(state, order) is state
    assert attention.cached_rows(state) == 5
    moved = query[:, order]
    found, _ = attention(moved[2:], None, None, incremental_state=state)
    close(found, attention(moved, None, None)[0][2:])
