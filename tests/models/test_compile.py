"""torch.compile takes the models as they are, and computes what they do, also at other lengths."""

from __future__ import annotations

import pytest
import torch

from ..toy import build, close, collate, sources, targets

dynamo = pytest.importorskip("torch._dynamo")


@pytest.mark.skipif(not dynamo.is_dynamo_supported(), reason="not on this Python")
@pytest.mark.parametrize("encoding", ["diet-rel", "diet-abs", "shaw", "rotary", "sinusoidal"])
def test_other_lengths_compile_too(encoding: str) -> None:
    model = build(encoding).eval()
    compiled = torch.compile(model, backend="eager")
    for lengths in ((5, 3), (7, 4), (9, 6)):
        source, previous = collate(sources(lengths)), collate(targets(lengths))
        close(compiled(source, None, previous)[0], model(source, None, previous)[0])
