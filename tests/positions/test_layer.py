"""What the base of every encoding's part says where an encoding says nothing."""

from __future__ import annotations

import pytest
import torch

from diet_mt.positions import (
    AttentionBias,
    AttentionPositions,
    AttentionShape,
    LayerPositions,
    Span,
)
from diet_mt.positions.layer import NOTHING

from ..toy import build, every_encoding

B, L, H, T, S, D = 2, 2, 3, 5, 7, 4


def test_a_bias_alone_changes_nothing_else() -> None:
    part = LayerPositions(torch.randn(H, T, S))
    x, padding = torch.randn(B, H, S, D), torch.zeros(B, S, dtype=torch.bool)
    assert part.queries(x) is x
    assert part.keys(x, padding) is x
    assert part.values(x, padding) is x
    assert part.factors() is None
    assert part.query_bias(x, S, 0.5) is None
    assert not part.changes_output
    assert part.output(torch.rand(B, H, T, S)) is None
    assert not part.mixes_keys


def test_a_step_has_one_row_of_the_bias_over_the_first_keys() -> None:
    bias = torch.randn(H, T, S)
    step = LayerPositions(bias).step(3, 4)
    assert step.bias is not None
    assert torch.equal(step.bias, bias[:, 3:4, :4])
    assert NOTHING.step(3, 4) is NOTHING
    assert NOTHING.bias is None


class Numbered(AttentionBias):
    """L|1 layers of a bias."""

    def __init__(self, layers: int) -> None:
        super().__init__(AttentionShape(L, H, D, 9, 11))
        self.table = torch.randn(layers, H, T, S)

    def forward(self, queries: Span, keys: Span) -> torch.Tensor:
        return self.table


@pytest.mark.parametrize("layers", [1, L])
def test_every_layer_gets_its_bias_or_the_one_that_all_share(layers: int) -> None:
    bias = Numbered(layers)
    parts = bias.for_layers(range(T), range(S))
    assert len(parts) == L
    for layer, part in enumerate(parts):
        assert part.bias is not None
        assert torch.equal(part.bias, bias.table[layer % layers])
    # Shared by the layers, it is one object: what is made of it is made once.
    assert (parts[0] is parts[1]) == (layers == 1)


@every_encoding
def test_a_step_equals_what_is_asked_for_the_step_alone(encoding: str, sharing: str | None) -> None:
    """All fields of every layer, for every encoding that decodes step by step."""
    model = build(encoding, sharing)
    for positions in (
        model.decoder.self_attn_positions,
        model.decoder.encoder_attn_positions,
    ):
        if positions is None:
            continue
        assert isinstance(positions, AttentionPositions)
        block = positions.for_layers(range(2, 8), range(9))
        alone = positions.for_layers(range(5, 6), range(7))
        assert len(block) == len(alone) == positions.shape.layers
        for part, expected in zip(block, alone, strict=True):
            step = part.step(3, 7)
            assert type(step) is type(expected)
            for name, value in vars(expected).items():
                found = getattr(step, name)
                if isinstance(value, torch.Tensor):
                    assert found.shape == value.shape, name
                    torch.testing.assert_close(found, value, rtol=0, atol=1e-12, msg=name)
                else:
                    assert found == value, name
