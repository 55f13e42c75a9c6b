"""The signature in the checkpoint: weights of one encoding are refused by another."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from diet_mt.errors import UserError
from diet_mt.models._signature import signature_tensor, signature_text

from ..toy import CASES, SAME_WIDTH, build, every_encoding, name_of

TEXT = "".join(chr(code) for code in range(32, 127))  # all of printable ASCII

# The options of tests/toy.py as the signature names them, by encoding.
SETTLED = {
    "shaw": "clip=2 values=True",
    "t5": "buckets=8 max-distance=6",
    "tupe-rel": "buckets=8 max-distance=6",
    "linformer": "projected=3",
    "kerple": "kernel=log",
    "deberta": "clip=3",
    "shape": "shift=0",
    "cape": "global-shift=0.0 local-shift=0.0 global-scale=1.0",
    "diet-abs-lin": "projected=3",
}

precisions = pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])


def test_text_survives_averaging() -> None:
    """fairseq's average_checkpoints.py adds all checkpoints up, then divides."""
    values = signature_tensor(TEXT)
    assert signature_text(values) == TEXT
    total = values.clone()
    for _ in range(99):
        total += values
    assert signature_text(total / 100) == TEXT


@pytest.mark.parametrize("decay", [0.5, 0.9999])
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
    assert text == expected_signature(encoding, sharing, "model")


def expected_signature(encoding: str, sharing: str | None, scale: str) -> str:
    shared = [f"sharing={sharing}"] if sharing else []
    settled = [SETTLED[encoding]] if encoding in SETTLED else []
    return " ".join([encoding, *shared, *settled, f"scale={scale}"])


@pytest.fixture(scope="module")
def states() -> dict[tuple[str, str | None], dict[str, torch.Tensor]]:
    """The state dict of every case."""
    return {case: build(*case).state_dict() for case in CASES}


@pytest.mark.parametrize(("encoding", "sharing"), [("diet-rel", "none"), ("rotary", None)])
def test_weights_of_every_other_encoding_are_refused(
    encoding: str,
    sharing: str | None,
    states: dict[tuple[str, str | None], dict[str, torch.Tensor]],
) -> None:
    model = build(encoding, sharing)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for other in CASES:
        if other == (encoding, sharing):
            continue
        with pytest.raises(UserError) as error:
            model.load_state_dict(states[other])
        text = str(error.value)
        assert "\n" not in text
        for name, mode in (other, (encoding, sharing)):
            assert f"'{expected_signature(name, mode, 'head')}'" in text, name_of(*other)
        assert "--position-*" in text
    # Nothing was half loaded.
    assert all(torch.equal(model.state_dict()[name], before[name]) for name in before)


CHANGED: list[tuple[str, dict[str, Any], str]] = [
    ("none", {"attention_scale": "model"}, "scale=model.*scale=head"),
    ("diet-abs", {"position_rank": 5}, "rank=5 scale=head.*layer-wise scale=head"),
    ("diet-rel", {"max_source_positions": 13}, "--max-source-positions"),
    ("concat", {"position_rank": 3}, "concat rank=3 scale=head.*concat scale=head"),
    ("shaw", {"position_clip": 3}, "clip=3 .*clip=2 "),
    ("shaw", {"position_values": False}, "values=False.*values=True"),
    ("t5", {"position_buckets": 10}, "buckets=10.*buckets=8"),
    ("t5", {"position_max_distance": 9}, "max-distance=9.*max-distance=6"),
    ("tupe-rel", {"position_max_distance": 9}, "max-distance=9.*max-distance=6"),
    ("tupe-abs", {"max_source_positions": 13}, "--max-source-positions"),
    ("linformer", {"linformer_k": 4}, "projected=4.*projected=3"),
    ("linformer", {"max_source_positions": 13}, "--max-source-positions"),
    ("diet-abs-lin", {"linformer_k": 4}, "projected=4.*projected=3"),
    ("shape", {"position_shift": 7}, "shift=7.*shift=0"),
    ("cape", {"position_global_scale": 1.5}, "global-scale=1.5.*global-scale=1.0"),
    ("deberta", {"position_clip": 4}, "clip=4.*clip=3"),
    ("kerple", {"position_kernel": "power"}, "kernel=power.*kernel=log"),
    ("learned", {"max_target_positions": 13}, "--max-target-positions"),
]


@pytest.mark.parametrize(("encoding", "changes", "message"), CHANGED)
def test_weights_trained_with_other_options_are_refused(
    encoding: str, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message) as error:
        build(encoding).load_state_dict(build(encoding, **changes).state_dict())
    assert "\n" not in str(error.value)


RANKS = (("diet-abs", 8), ("diet-abs-lin", 8), ("concat", 2))


def test_a_rank_given_as_it_is_by_default_is_the_same_model() -> None:
    for encoding, rank in RANKS:
        given = build(encoding, position_rank=rank, **SAME_WIDTH)
        given.load_state_dict(build(encoding, seed=2, **SAME_WIDTH).state_dict())


@pytest.mark.parametrize(("encoding", "rank"), RANKS)
def test_a_rank_that_is_given_is_in_the_signature(encoding: str, rank: int) -> None:
    """Checkpoints of before it was are told by the shapes of their tables."""
    model = build(encoding, position_rank=rank + 1, **SAME_WIDTH)
    state = model.state_dict()
    said = f" rank={rank + 1} "
    assert said in signature_text(state["position_signature"])
    state["position_signature"] = signature_tensor(model.signature.replace(said, " "))
    model.load_state_dict(dict(state))
    with pytest.raises(UserError, match="--position-rank"):
        build(encoding, position_rank=rank, **SAME_WIDTH).load_state_dict(state)


def test_weights_without_a_signature_are_refused() -> None:
    model = build("none")
    state = model.state_dict()
    del state["position_signature"]
    with pytest.raises(UserError, match="no position signature"):
        model.load_state_dict(state)


@precisions
def test_the_signature_survives_other_precisions(dtype: torch.dtype) -> None:
    """Also the way through the state dict of a half-precision model and back."""
    model = build("shaw")
    state = model.to(dtype).state_dict()
    assert signature_text(state["position_signature"]) == model.signature
    build("shaw").load_state_dict(state)
