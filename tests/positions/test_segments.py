"""Segments by themselves: the table of each head, and what comes of it."""

from __future__ import annotations

import pytest
import torch

from diet_mt.positions import AttentionShape, SegmentInput, SegmentPositions
from diet_mt.positions.base import INIT_STD
from diet_mt.positions.segments import one_hot
from diet_mt.system.errors import UserError

L, H, D, N = 2, 3, 4, 5
SHAPE = AttentionShape(L, H, D, 9, 9)
IDS = torch.tensor([[0, 0, 4, 2, 1, 3, 3], [4, 1, 1, 0, 0, 0, 2]])  # (B, S)


def test_by_hand() -> None:
    """Two segments, one head: the query's segment chooses the row, the key's the column."""
    segments = SegmentPositions(AttentionShape(1, 1, 2, 4, 4), "none", 2)
    (table,) = segments.tables()
    with torch.no_grad():
        table.get_parameter("weight").copy_(torch.tensor([[[1.0, 2], [3, 4]]]))
    ((of_query, of_key),) = segments(torch.tensor([[0, 0, 1]]))
    product = of_query @ of_key.transpose(-1, -2)
    assert product[0, 0].tolist() == [[1, 1, 2], [1, 1, 2], [3, 3, 4]]


def test_initial_values() -> None:
    """E_S starts at zero, vectors at the input as BERT's."""
    assert not any(table.any() for table in SegmentPositions(SHAPE, "none", N).parameters())
    vectors = SegmentInput(64, 512)
    assert vectors.weight.std().item() == pytest.approx(INIT_STD, rel=0.03)


def test_vectors_at_the_input() -> None:
    vectors = SegmentInput(N, 6)
    assert torch.equal(vectors(IDS), vectors.weight[IDS])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_tables_of_half_precision_give_factors_of_float32(dtype: torch.dtype) -> None:
    segments = SegmentPositions(SHAPE, "none", N).to(dtype)
    assert {factor.dtype for pair in segments(IDS) for factor in pair} == {torch.float32}
    assert SegmentInput(N, 6).to(dtype)(IDS).dtype == dtype


@pytest.mark.parametrize(("ids", "named"), [([0, 5], 5), ([-3, 2], -3), ([-1, 9], -1)])
def test_segments_that_are_not_there(ids: list[int], named: int) -> None:
    with pytest.raises(UserError, match=f"{named} .*0 to 4.*--num-segments"):
        one_hot(torch.tensor([ids]), N)


def test_no_tokens_have_no_segments() -> None:
    assert one_hot(torch.zeros(2, 0).long(), N).shape == (2, 0, N)
