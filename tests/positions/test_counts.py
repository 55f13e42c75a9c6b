"""Parameter counts: the arithmetic of the paper's table 6, and of the papers it compares with."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from diet_mt.positions import CROSS, AttentionShape, build_position

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


# p with its norm's scale and shift, and U_Q and U_K of all heads together.
P, U = 512 * 768 + 2 * 768, 2 * 768 * 768
# E and F of one layer for k = 32.
MIXES = 2 * 512 * 32


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        # 33 vectors of the head's size in each layer, twice with values.
        ("shaw", {}, 12 * 33 * 64),
        ("shaw", {"values": True}, 2 * 12 * 33 * 64),
        ("shaw", {"clip": 20}, 12 * 41 * 64),
        ("shaw", {"sharing": "none"}, 12 * 12 * 33 * 64),
        ("shaw", {"sharing": "layer-wise"}, 12 * 33 * 64),
        # 32 scalars per head for the whole stack.
        ("t5", {}, 12 * 32),
        ("t5", {"buckets": 64}, 12 * 64),
        ("t5", {"sharing": "none"}, 12 * 12 * 32),
        ("t5", {"sharing": "head-wise"}, 12 * 32),
        # p is one table in every mode; head-wise U is one of D columns.
        ("tupe-abs", {}, P + U),
        ("tupe-abs", {"sharing": "none"}, P + 12 * U),
        ("tupe-abs", {"sharing": "head-wise"}, P + 12 * U // 12),
        ("tupe-rel", {}, P + U + 12 * 32),
        ("tupe-rel", {"sharing": "none"}, P + 12 * U + 12 * 12 * 32),
        ("rotary", {}, 0),
        ("pope", {}, 12 * 12 * 64),
        ("pope", {"sharing": "layer-wise"}, 12 * 64),
        ("alibi", {}, 0),
        ("sandwich", {}, 0),
        # r1 and r2 of every head.
        ("kerple", {}, 12 * 12 * 2),
        # 32 units with a weight and an offset, c and L; 32 weights for every head.
        ("fire", {}, 12 * (2 * 32 + 2 + 12 * 32)),
        ("fire", {"sharing": "layer-wise"}, 2 * 32 + 2 + 12 * 32),
        # P of 1024 rows, W_q,r and W_k,r.
        ("deberta", {}, 1024 * 768 + 12 * U),
        ("deberta", {"sharing": "layer-wise", "clip": 64}, 128 * 768 + U),
        ("linformer", {}, 12 * MIXES),
        ("linformer", {"sharing": "layer-wise"}, 12 * MIXES),
        ("linformer", {"sharing": "none"}, 12 * 12 * MIXES),
        ("linformer", {"projected": 128}, 12 * 4 * MIXES),
        # Equation 4: P_Q over n positions and P_K over k mixtures.
        ("diet-abs-lin", {}, 12 * MIXES + 12 * (512 + 32) * 64),
        ("diet-abs-lin", {"sharing": "none"}, 12 * MIXES + 12 * 12 * (512 + 32) * 64),
        ("diet-abs-lin", {"rank": 128}, 12 * MIXES + 12 * (512 + 32) * 128),
    ],
)
def test_counts_of_the_other_papers(name: str, given: dict[str, Any], expected: int) -> None:
    assert count(name, BERT_BASE, **given) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("learned", 512 * 768),
        ("linformer", 512 * 768),
        ("concat", 512 * 96),
        ("sinusoidal", 0),
        ("shape", 0),
        ("cape", 0),
    ],
)
def test_counts_at_the_input(name: str, expected: int) -> None:
    term = build_position(name).input_positions(512, 768)
    assert term is not None
    assert sum(parameter.numel() for parameter in term.parameters()) == expected


def test_cross_attention_counts_both_lengths() -> None:
    """10 target and 11 source positions; 2 heads of 9 make 18 columns of p."""
    cross = AttentionShape(3, 2, 9, 10, 11, CROSS)
    assert count("diet-rel", cross) == 3 * 2 * (10 + 11 - 1)
    assert count("diet-abs", cross, sharing="none") == 3 * 2 * (10 + 11) * 9
    assert count("tupe-abs", cross) == (10 + 2 + 11 + 2) * 18 + 2 * 18 * 18
    # The decoder's part of diet-abs-lin is diet-abs.
    assert count("diet-abs-lin", cross) == 2 * (10 + 11) * 9
