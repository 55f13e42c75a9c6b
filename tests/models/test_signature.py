"""The signature in the checkpoint: weights of one encoding are refused by another."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from diet_mt.errors import UserError
from diet_mt.models._signature import signature_tensor, signature_text

from ..toy import CASES, build, every_encoding, name_of

TEXT = "".join(chr(code) for code in range(32, 127))  # all of printable ASCII

precisions = pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])


def test_text_survives_averaging() -> None:
    """fairseq's average_checkpoints.py adds all checkpoints up, then divides."""
    values = signature_tensor(TEXT)
    assert signature_text(values) == TEXT
    total = values.clone()
    for _ in range(99):
        total += values
    assert signature_text(total / 100) == TEXT


@pytest.mark.parametrize("decay", [0.5, 0.99, 0.999, 0.9999])
@precisions
def test_text_survives_exponential_averaging(dtype: torch.dtype, decay: float) -> None:
    """--store-ema: scaled and added to in place, at every update."""
    values = signature_tensor(TEXT).to(dtype)
    mean = values.clone()
    for _ in range(300):
        mean.mul_(decay).add_(values, alpha=1 - decay)
    assert signature_text(mean) == TEXT


@every_encoding
def test_the_signature_says_what_was_trained(encoding: str, sharing: str | None) -> None:
    state = build(encoding, sharing, attention_scale="model").state_dict()
    text = signature_text(state["position_signature"])
    assert text.split() == [
        encoding,
        *([f"sharing={sharing}"] if sharing else []),
        "scale=model",
    ]


@every_encoding
def test_weights_of_every_other_encoding_are_refused(encoding: str, sharing: str | None) -> None:
    model = build(encoding, sharing)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for other in CASES:
        if other == (encoding, sharing):
            continue
        state = build(*other).state_dict()
        with pytest.raises(UserError) as error:
            model.load_state_dict(state)
        text = str(error.value)
        assert "\n" not in text
        for name, mode in (other, (encoding, sharing)):
            assert f"'{name}{f' sharing={mode}' if mode else ''} scale=head'" in text, name_of(
                *other
            )
        assert "--position-*" in text
    # Nothing was half loaded.
    assert all(torch.equal(model.state_dict()[name], before[name]) for name in before)


CHANGED: list[tuple[str, dict[str, Any], str]] = [
    ("none", {"attention_scale": "model"}, "scale=model.*scale=head"),
    ("diet-abs", {"position_rank": 5}, "--position-rank"),
    ("diet-rel", {"max_source_positions": 13}, "--max-source-positions"),
    ("learned", {"max_target_positions": 13}, "--max-target-positions"),
]


@pytest.mark.parametrize(("encoding", "changes", "message"), CHANGED)
def test_weights_trained_with_other_options_are_refused(
    encoding: str, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message) as error:
        build(encoding).load_state_dict(build(encoding, **changes).state_dict())
    assert "\n" not in str(error.value)


def test_weights_without_a_signature_are_refused() -> None:
    model = build("none")
    state = model.state_dict()
    del state["position_signature"]
    with pytest.raises(UserError, match="no position signature"):
        model.load_state_dict(state)


@precisions
@every_encoding
def test_the_signature_survives_other_precisions(
    encoding: str, sharing: str | None, dtype: torch.dtype
) -> None:
    """Also the way through the state dict of a half-precision model and back."""
    model = build(encoding, sharing)
    state = model.to(dtype).state_dict()
    assert signature_text(state["position_signature"]) == model.signature
    build(encoding, sharing).load_state_dict(state)
