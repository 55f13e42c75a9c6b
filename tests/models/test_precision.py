"""Half precision on CPU: finite, and close to float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from diet_mt.positions import NAMES, AttentionPositions, InputPositions

from ..positions.test_encodings import fields_of
from ..toy import (
    KINDS,
    attention_positions,
    build,
    collate,
    each_encoding,
    each_kind,
    position_parameters,
    sources,
    targets,
)

HALVES = [torch.float16, torch.bfloat16]
half_precision = pytest.mark.parametrize("dtype", HALVES, ids=["fp16", "bf16"])


def batch() -> tuple[Tensor, None, Tensor]:
    return collate(sources(), "left"), None, collate(targets())


def tolerance(dtype: torch.dtype, expected: Tensor) -> float:
    """8 eps of the largest logit.

    Five layers, each of which rounds what it passes on two or three times, by half an eps. Errors
    of 1 to 2 eps are seen; without its positions a model is off by 30% to 80%, which is 40 eps of
    bfloat16.
    """
    return 8 * torch.finfo(dtype).eps * expected.abs().max().item()


@half_precision
@each_encoding
def test_a_half_precision_model_is_close(
    encoding: str, sharing: str | None, dtype: torch.dtype
) -> None:
    """``model.half()``, as --fp16 does, in one pass and step by step."""
    model = build(encoding, sharing).eval()
    with torch.no_grad():
        expected, _ = model(*batch())
        model.to(dtype)
        actual, extra = model(*batch(), alignment_layer=2)
        assert actual.dtype == dtype
        limit = tolerance(dtype, expected)
        torch.testing.assert_close(actual.double(), expected, rtol=0, atol=limit)
        assert torch.isfinite(extra["attn"][0]).all()
        # The rest of the shape is in test_incremental.py; this is the precision of caches.
        encoder_out = model.encoder(batch()[0], None)
        state: dict[str, Any] = {}
        for t in range(2):  # the shortest target has two tokens
            step, _ = model.decoder(batch()[2][:, : t + 1], encoder_out, incremental_state=state)
            assert step.dtype == dtype
            torch.testing.assert_close(step[:, 0].double(), expected[:, t], rtol=0, atol=limit)


@half_precision
@each_kind
def test_gradients_of_a_half_precision_model_are_finite_and_there(
    encoding: str, sharing: str | None, dtype: torch.dtype
) -> None:
    model = build(encoding, sharing).to(dtype)
    source, _, previous = batch()
    source[3] = 1  # a row of padding alone
    model(source, None, previous)[0].float().sin().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
    for name, parameter in position_parameters(model).items():
        assert parameter.grad is not None
        assert parameter.grad.any(), name


@each_kind
def test_autocast_is_close(encoding: str, sharing: str | None) -> None:
    """--amp: weights stay float32, products run in bfloat16."""
    model = build(encoding, sharing).float()
    expected, _ = model(*batch())
    with torch.autocast("cpu", torch.bfloat16):
        actual, _ = model(*batch())
        loss = actual.float().sin().sum()
    limit = tolerance(torch.bfloat16, expected)
    torch.testing.assert_close(actual.float(), expected, rtol=0, atol=limit)
    loss.backward()
    for name, parameter in position_parameters(model).items():
        assert parameter.grad is not None
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.any(), name


@pytest.mark.parametrize("encoding", sorted(NAMES.keys() - {"none"}))
def test_positions_far_apart_stay_apart(encoding: str) -> None:
    """In bfloat16 257 is 256 (fp16: 2,049 is 2,048), so positions must be whole numbers.

    The last of 300 keys gets a table entry of its own; a position rounded to half precision would
    read its neighbour's.
    """
    length, dtype = 300, torch.bfloat16
    model = build(encoding, max_source_positions=length, tables=0.7).eval()
    exact = at_the_end(model.encoder, length)
    actual = at_the_end(model.encoder.to(dtype), length)
    assert exact.keys() == actual.keys() != set()
    for name, values in exact.items():
        # Entries are rounded, and so are their products with as many terms; nothing more.
        limit = 4 * torch.finfo(dtype).eps * values.abs().max().item()
        # Some are complex.
        torch.testing.assert_close(actual[name].cdouble(), values.cdouble(), rtol=0, atol=limit)


def at_the_end(stack: nn.Module, length: int) -> dict[str, Tensor]:
    """What the encoding says about the last of ``length`` positions of the encoder."""
    actual: dict[str, Tensor] = {}
    if isinstance(stack.embed_positions, InputPositions):
        actual["input"] = stack.embed_positions.rows(range(length - 1, length))
    if isinstance(stack.self_attn_positions, AttentionPositions):
        for number, part in enumerate(
            stack.self_attn_positions.for_layers(range(length - 1, length), range(length))
        ):
            actual |= {f"{name} {number}": tensor for name, tensor in fields_of(part).items()}
    return actual


@each_encoding
def test_tables_of_half_precision_give_positions_of_float32(
    encoding: str, sharing: str | None
) -> None:
    """Sums are taken in float32; rounding happens once, where attention reads them."""
    model = build(encoding, sharing).half()
    for kind in KINDS:
        positions = attention_positions(model, kind)
        if positions is not None:
            for part in positions.for_layers(range(5), range(5)):
                given = fields_of(part).values()
                assert given
                # Angles are in float64 from the start; complex64 has two numbers of float32.
                precise = (torch.float32, torch.float64, torch.complex64)
                assert all(tensor.dtype in precise for tensor in given)
