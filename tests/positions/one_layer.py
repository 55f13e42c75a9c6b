"""What one layer gets of an encoding, without the layer."""

from __future__ import annotations

from diet_mt.positions import AttentionPositions, Term


def term_of(
    positions: AttentionPositions, layer: int, query_start: int, query_len: int, key_len: int
) -> Term:
    """The term of ``layer`` for ``query_len`` T queries from ``query_start`` on over S keys."""
    terms = positions.terms(query_start, query_len, key_len)
    assert terms.bias is None, "a bias needs no term of its own"
    own = {name: stack[0 if stack.size(0) == 1 else layer] for name, stack in terms.tensors.items()}
    return terms.kind(query_start=query_start, query_len=query_len, **own)
