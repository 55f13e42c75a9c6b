"""What is read out of the model is what it computes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from diet_mt.figures.observed import Seen, System, observe

from ..toy import build, collate, each_encoding, sources, targets


def seen_in(encoding: str, sharing: str | None = None) -> list[Seen]:
    """All calls of attention of a toy model, over padded sentences."""
    system = System(encoding, encoding, build(encoding, sharing).eval(), None, 9)
    source = collate(sources())
    lengths = torch.tensor([len(row) for row in sources()])
    given = {"src_tokens": source, "src_lengths": lengths, "prev_output_tokens": collate(targets())}
    return observe(system, given)


@each_encoding
def test_weights_are_those_that_attention_uses(encoding: str, sharing: str | None) -> None:
    seen = seen_in(encoding, sharing)
    assert [(call.kind, call.layer) for call in seen] == [
        *[("encoder", 0), ("encoder", 1)],
        *[(kind, layer) for kind in ("decoder", "cross") for layer in range(3)],
    ]
    for call in seen:
        asked = replace(call.call, need_weights=True)
        with torch.no_grad():
            _, weights = call.module(call.query, call.source, asked)
        torch.testing.assert_close(call.weights(), weights)


@pytest.mark.parametrize("encoding", ["diet-rel", "diet-abs", "t5", "alibi", "kerple"])
def test_positional_logits_are_what_words_leave(encoding: str) -> None:
    for call in seen_in(encoding):
        module = call.module
        source = call.query if call.source is None else call.source
        heads = module.num_heads
        with torch.no_grad():
            q, k = module.q_proj(call.query), module.k_proj(source)  # (T, B, E), (S, B, E)
        q, k = (x.unflatten(-1, (heads, -1)) for x in (q, k))
        words = torch.einsum("tbhd,sbhd->bhts", q, k) / q.size(-1) ** 0.5
        torch.testing.assert_close(call.logits() - words, call.positional())


@pytest.mark.parametrize("encoding", ["none", "sinusoidal", "learned", "rotary", "linformer"])
def test_without_a_term_nothing_is_left(encoding: str) -> None:
    assert not any(call.positional().any() for call in seen_in(encoding))


def test_a_term_of_words_differs_from_sentence_to_sentence() -> None:
    term = seen_in("shaw")[0].positional()
    assert not torch.allclose(term[0], term[1])
