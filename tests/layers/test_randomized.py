"""``--position-randomized`` with every encoding: what stands at some positions is what would
stand there if those between were empty.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from diet_mt.layers import run as runs
from diet_mt.layers.multihead import AttentionCall
from diet_mt.models.diet_transformer import DietTransformerModel

from ..toy import (
    KINDS,
    KINDS_OF_ENCODING,
    NOT_RANDOMIZED,
    ONE_EACH,
    SIZES,
    attention_modules,
    attention_positions,
    build,
    close,
    collate,
    sources,
    targets,
)
from .test_incremental import Decoding, within

RANGE = 23  # positions; sentences have up to 11 and 10 tokens
each_randomized = pytest.mark.parametrize(
    ("encoding", "sharing"), [case for case in ONE_EACH if case[0] not in NOT_RANDOMIZED]
)


def randomized(encoding: str, sharing: str | None = None, **more: Any) -> DietTransformerModel:
    return build(encoding, sharing, position_randomized=RANGE, **more)


def scattered(x: Tensor, at: Tensor) -> Tensor:
    """(T, B, E) ``at`` these of a sequence of all positions, noise between: (N, B, E)."""
    whole = torch.randn(RANGE, *x.shape[1:], dtype=x.dtype)
    whole[at] = x
    return whole


@pytest.mark.parametrize("kind", KINDS)
@each_randomized
def test_positions_between_are_as_if_closed(encoding: str, sharing: str | None, kind: str) -> None:
    model = randomized(encoding, sharing)
    positions = attention_positions(model, kind)
    if positions is None:
        return
    stack, batch, layer = "encoder" if kind == "encoder" else "decoder", 2, 1
    own = torch.tensor([0, 2, 3, 9, 15, 22])
    others = torch.tensor([1, 4, 5, 13, 21]) if kind == "cross" else own
    query = torch.randn(own.numel(), batch, SIZES[f"{stack}_embed_dim"], dtype=torch.float64)
    source = None
    if kind == "cross":
        source = torch.randn(5, batch, SIZES["encoder_embed_dim"], dtype=torch.float64)
    module, causal = attention_modules(model)[kind, layer], kind == "decoder"
    actual, _ = module(
        query, source, AttentionCall(positions.for_layers(own, others)[layer], causal=causal)
    )
    closed = torch.ones(batch, RANGE, dtype=torch.bool)
    closed[:, others] = False
    whole = positions.for_layers(range(RANGE), range(RANGE))[layer]
    # Queries between have no open key before position 0; their outputs are not looked at.
    expected, _ = module(
        scattered(query, own),
        None if source is None else scattered(source, others),
        AttentionCall(whole, closed, causal=causal),
    )
    close(actual, expected[own])


@pytest.mark.usefixtures("either_memory")
@torch.no_grad()
@each_randomized
def test_step_by_step_equals_all_at_once(
    encoding: str, sharing: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And from one block of positions to the next."""
    monkeypatch.setattr(runs, "BLOCK", 4)
    decoding = Decoding(randomized(encoding, sharing), collate(sources((7, 4, 1)), "left"))
    decoding.reorder(torch.arange(3).repeat_interleave(4))
    decoding.step()
    for _ in range(4):
        decoding.step()
        decoding.reorder(within(12, 4))
    decoding.reorder(torch.tensor([3, 0, 9, 1, 1, 5]))  # rows in any order
    decoding.step()


DRAWN: list[tuple[str, dict[str, Any]]] = [
    *((encoding, {"position_randomized": RANGE}) for encoding in KINDS_OF_ENCODING),
    ("shape", {"position_shift": 500}),
    ("cape", {"position_global_shift": 5.0, "position_local_shift": 0.5}),
]


@pytest.mark.parametrize(("encoding", "options"), DRAWN)
def test_training_draws_and_the_seed_repeats_it(encoding: str, options: dict[str, Any]) -> None:
    model = build(encoding, **options)
    source, previous = collate(sources(), "left"), collate(targets())

    def logits(seed: int) -> Tensor:
        torch.manual_seed(seed)
        actual: Tensor = model(source, None, previous)[0]
        return actual

    first = logits(5)
    assert torch.equal(logits(5), first)
    assert not torch.allclose(logits(6), first, atol=1e-3)
    model.eval()
    assert torch.equal(logits(5), logits(6))
    after = torch.get_rng_state()
    torch.manual_seed(6)
    assert torch.equal(torch.get_rng_state(), after), "nothing is drawn in evaluation"


def test_input_and_attention_stand_at_the_same_positions() -> None:
    """Those that the encoder hands on; the target's are drawn apart."""
    model = randomized("diet-rel", position_input="sinusoidal")
    source, width = collate(sources((7, 7))), SIZES["encoder_embed_dim"]
    calls = []
    positions = attention_positions(model, "encoder")
    assert positions is not None
    positions.terms = lambda *given, terms=positions.terms: calls.append(given) or terms(*given)
    out = model.encoder(source, None)
    (drawn,) = out["source_positions"]
    words = model.encoder.embed_tokens(source) * width**0.5
    angle = drawn[:, None] * 10000.0 ** -(torch.arange(width // 2) / (width // 2 - 1))
    added = model.encoder.forward_embedding(source, None, drawn)[0] - words
    expected = torch.cat([angle.sin(), angle.cos()], dim=1).double()
    # Sinusoids are stored in float32.
    torch.testing.assert_close(added, expected.expand(2, -1, -1), rtol=0, atol=1e-5)
    assert [bool(torch.equal(each, drawn)) for each in calls[0]] == [True, True]
    cross = attention_positions(model, "cross")
    assert cross is not None
    cross.terms = lambda *given, terms=cross.terms: calls.append(given) or terms(*given)
    model.decoder(collate(targets((7, 7))), out)
    assert torch.equal(calls[1][1], drawn)
    assert not torch.equal(calls[1][0], drawn)
