"""Attention as the model computes it; rank, distance and locality of known matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from diet_mt.figures.capture import AttentionRecord, System, record
from diet_mt.figures.heads import locality
from diet_mt.figures.patterns import by_distance
from diet_mt.figures.rank import RankRow, rank_pictures, ranks

from ..toy import build, collate, each_encoding, sources, targets


def recorded(encoding: str, sharing: str | None = None) -> list[AttentionRecord]:
    """All calls of attention of a toy model, over padded sentences."""
    system = System(encoding, encoding, build(encoding, sharing).eval(), None, 9)
    source = collate(sources())
    lengths = torch.tensor([len(row) for row in sources()])
    given = {"src_tokens": source, "src_lengths": lengths, "prev_output_tokens": collate(targets())}
    return record(system, given)


@each_encoding
def test_weights_are_those_that_attention_uses(encoding: str, sharing: str | None) -> None:
    calls = recorded(encoding, sharing)
    assert [(call.kind, call.layer) for call in calls] == [
        *[("encoder", 0), ("encoder", 1)],
        *[(kind, layer) for kind in ("decoder", "cross") for layer in range(3)],
    ]
    for call in calls:
        with_weights = replace(call.call, need_weights=True)
        with torch.no_grad():
            _, weights = call.module(call.query, call.source, with_weights)
        torch.testing.assert_close(call.weights(), weights)


@pytest.mark.parametrize("encoding", ["diet-rel", "diet-abs", "t5", "alibi", "kerple"])
def test_positional_logits_are_what_words_leave(encoding: str) -> None:
    for call in recorded(encoding):
        module = call.module
        source = call.query if call.source is None else call.source
        heads = module.num_heads
        with torch.no_grad():
            q, k = module.q_proj(call.query), module.k_proj(source)  # (T, B, E), (S, B, E)
        q, k = (x.unflatten(-1, (heads, -1)) for x in (q, k))
        words = torch.einsum("tbhd,sbhd->bhts", q, k) / q.size(-1) ** 0.5
        torch.testing.assert_close(call.logits() - words, call.positional())


@pytest.mark.parametrize("encoding", ["none", "sinusoidal", "learned", "rotary", "linformer"])
def test_without_a_term_nothing_is_left(encoding: str) -> None:
    assert not any(call.positional().any() for call in recorded(encoding))


def test_a_term_of_words_differs_from_sentence_to_sentence() -> None:
    term = recorded("shaw")[0].positional()
    assert not torch.allclose(term[0], term[1])


def test_rank_counts_what_torch_counts() -> None:
    left, right = torch.randn(3, 2, 12, 5).double(), torch.randn(3, 2, 5, 9).double()
    matrices = left @ right
    own = ranks(matrices)
    assert torch.equal(own.rank, torch.linalg.matrix_rank(matrices, rtol=1e-9))
    assert own.rank.unique().tolist() == [5]


def test_the_effective_rank_is_that_of_equal_values_and_less_of_others() -> None:
    equal = torch.diag(torch.tensor([2.0, 2, 2, 0])).double()
    steep = torch.diag(torch.tensor([9.0, 1, 1, 0])).double()
    zero = torch.zeros(4, 4).double()
    values = ranks(torch.stack([equal, steep, zero]))
    assert values.rank.tolist() == [3, 3, 0]
    assert values.effective[0] == pytest.approx(3)
    shares = np.array([9, 1, 1]) / 11
    assert values.effective[1] == pytest.approx(np.exp(-(shares * np.log(shares)).sum()))
    assert values.effective[2] == 0


def test_a_head_of_zeros_leaves_the_spectrum_of_the_others() -> None:
    def row(head: int, *singular: float) -> RankRow:
        place = ("sinusoidal", "sinusoidal_tiny", "encoder", 1, head, "logits", 3, [], 1, 2)
        return RankRow(*place, 1e-9, 2, 2, 2, 2.0, list(singular))

    rows = [row(1, 0, 0, 0), row(2, 8, 4, 2), row(3, 8, 4, 2)]
    (panel,) = dict(rank_pictures(rows))["spectrum"].axes
    assert panel.lines[0].get_ydata().tolist() == [1, 0.5, 0.25]


def test_the_value_of_each_distance() -> None:
    matrix = torch.tensor([[10.0 * (i - j) for j in range(4)] for i in range(3)]).double()
    values = by_distance(torch.stack([matrix, matrix + 1]))
    assert values is not None
    assert values[0].tolist() == [10.0 * distance for distance in range(-3, 3)]
    assert values[1].tolist() == [10.0 * distance + 1 for distance in range(-3, 3)]
    matrix[2, 1] += 1e-6
    assert by_distance(matrix) is None


@pytest.mark.parametrize(
    ("shift", "pattern", "near"), [(0, "local", 1.0), (2, "local", 1.0), (5, "shifted", 0.25)]
)
def test_a_head_with_its_weight_so_far_back(shift: int, pattern: str, near: float) -> None:
    """All weight ``shift`` tokens before the query; at the beginning, on the first token."""
    weights = torch.zeros(1, 12, 12).double()
    for query in range(12):
        weights[0, query, max(query - shift, 0)] = 1
    head = locality(weights, torch.ones(1, 12, 12).bool(), 2)
    assert (head.peak, head.pattern) == (shift, pattern)
    assert head.near == pytest.approx(near)


def test_equal_weights_are_global_and_padding_does_not_count() -> None:
    """Five real tokens of eight, in a causal triangle."""
    allowed = torch.zeros(1, 8, 8).bool()
    allowed[0, :5, :5] = True
    allowed = allowed.tril()
    weights = torch.full((1, 8, 8), 7.0).double()  # of padding: nonsense
    for query in range(5):
        weights[0, query, : query + 1] = 1 / (query + 1)
    head = locality(weights, allowed, 1)
    by_hand = np.mean([1, 1, 2 / 3, 2 / 4, 2 / 5])
    assert head.near == pytest.approx(by_hand)
    assert head.flat == pytest.approx(by_hand)
    equal = locality(torch.full((1, 20, 20), 0.05).double(), torch.ones(1, 20, 20).bool(), 1)
    assert equal.pattern == "global"


def test_the_peak_where_no_distance_is_open_to_half_of_the_queries() -> None:
    """Nine queries, three keys; all weight on the first key."""
    weights = torch.zeros(1, 9, 3).double()
    weights[..., 0] = 1
    head = locality(weights, torch.ones(1, 9, 3).bool(), 1)
    assert head.peak in range(7)
