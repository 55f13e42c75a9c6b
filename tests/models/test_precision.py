"""Half precision on CPU: finite, and close to float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from ..positions.cases import CASES, no_input
from ..toy import (
    assert_finite_gradients,
    build,
    collate,
    each_encoding,
    each_kind,
    position_parameters,
    sources,
    step_by_step,
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
        steps = step_by_step(model, batch()[0], batch()[2][:, :2])  # the shortest target has two
        assert steps.dtype == dtype
        torch.testing.assert_close(steps.double(), expected[:, :2], rtol=0, atol=limit)


@half_precision
@each_kind
def test_gradients_of_a_half_precision_model_are_finite_and_there(
    encoding: str, sharing: str | None, dtype: torch.dtype
) -> None:
    model = build(encoding, sharing).to(dtype)
    source, _, previous = batch()
    source[3] = 1  # a row of padding alone
    model(source, None, previous)[0].float().sin().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert_finite_gradients(model, *position_parameters(model))


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
    assert_finite_gradients(model, *position_parameters(model))


AT_THE_INPUT = sorted(name for name, case in CASES.items() if case.input_row is not no_input)


@pytest.mark.parametrize("encoding", AT_THE_INPUT)
def test_rows_far_apart_stay_apart(encoding: str) -> None:
    """In bfloat16 257 is 256, so positions must be whole numbers; those inside attention are in
    tests/positions/test_encodings.py.
    """
    model, last = build(encoding, max_source_positions=300).eval(), range(299, 300)
    exact = model.encoder.embed_positions.rows(last).clone()
    rows = model.encoder.to(torch.bfloat16).embed_positions.rows(last)
    limit = 4 * torch.finfo(torch.bfloat16).eps * exact.abs().max().item()
    torch.testing.assert_close(rows.double(), exact.double(), rtol=0, atol=limit)
