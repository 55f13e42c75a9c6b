"""Parameter counts: the arithmetic of the paper's table 6."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from diet_mt.positions import AttentionShape, build_position

# 12 layers, 12 heads of 64, 512 positions.
BERT_BASE = AttentionShape(12, 12, 64, 512, 512)
TABLES_AT_THE_INPUT = (512 + 2) * 768  # positions and segments
BASELINE_MILLIONS = 110.1


def count(name: str, shape: AttentionShape, **given: Any) -> int:
    """Numbers that learn inside one kind of attention."""
    with torch.device("meta"):
        positions = build_position(name, **given).attention_positions(shape)
    assert positions is not None
    return sum(parameter.numel() for parameter in positions.parameters())


@pytest.mark.parametrize(
    ("name", "given", "expected", "millions"),
    [
        ("diet-rel", {}, 12 * 12 * 1023, 109.9),
        ("diet-rel", {"sharing": "layer-wise"}, 12 * 1023, 109.7),
        ("diet-rel", {"sharing": "head-wise"}, 12 * 1023, None),
        ("diet-abs", {"sharing": "none", "rank": 128}, 2 * 12 * 12 * 512 * 128, 128.6),
        ("diet-abs", {"rank": 128}, 2 * 12 * 512 * 128, 111.3),
        ("diet-abs", {"sharing": "head-wise", "rank": 128}, 2 * 12 * 512 * 128, None),
        ("diet-abs", {}, 2 * 12 * 512 * 64, None),
    ],
)
def test_counts_of_the_paper(
    name: str, given: dict[str, Any], expected: int, millions: float | None
) -> None:
    added = count(name, BERT_BASE, **given)
    assert added == expected
    if millions is not None:
        # The published baseline has one decimal, so the sum may be off by one in the last.
        total = BASELINE_MILLIONS + (added - TABLES_AT_THE_INPUT) / 1e6
        assert total == pytest.approx(millions, abs=0.101)
