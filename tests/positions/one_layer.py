"""What one layer gets of an encoding, without the layer."""

from __future__ import annotations

from diet_mt.positions import AttentionPositions, LayerPositions


def part_of(
    positions: AttentionPositions, layer: int, query_start: int, query_len: int, key_len: int
) -> LayerPositions:
    """What ``layer`` gets for ``query_len`` T queries from ``query_start`` on over S keys."""
    parts = positions.for_layers(range(query_start, query_start + query_len), range(key_len))
    assert len(parts) == positions.shape.layers
    return parts[layer]
