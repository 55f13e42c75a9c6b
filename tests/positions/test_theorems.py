"""The two theorems of Chen et al. 2021, section 2 and appendix B, as small numeric experiments."""

from __future__ import annotations

import torch
from torch import Tensor

from diet_mt.positions import AttentionShape, build_position

from ..toy import build, position_parameters

N, D, R, E = 10, 3, 4, 8  # d_h = 3 < d_p = 4, d = 8, n >= d_h + d_p


def projected(x: Tensor) -> tuple[Tensor, Tensor]:
    """X W_Q and X W_K, (n, D) each."""
    w_q, w_k = torch.randn(2, E, D, dtype=torch.float64)
    return x @ w_q, x @ w_k


def test_theorem_1_positions_at_the_input_leave_the_rank_at_the_head_size() -> None:
    term = build_position("learned").input_positions(N, E)
    assert term is not None
    x = torch.randn(N, E, dtype=torch.float64) + term.double().rows(0, N)[0]
    q, k = projected(x)
    assert torch.linalg.matrix_rank(q @ k.T) == D


def test_theorem_1_positions_in_the_logits_raise_the_rank_to_the_sum() -> None:
    bias = build_position("diet-abs", rank=R).attention_positions(AttentionShape(1, 1, D, N, N))
    assert bias is not None
    q, k = projected(torch.randn(N, E, dtype=torch.float64))
    position = bias.double()(0, N, N)[0, 0] * 1e4  # from the initial 0.0004 to the size of q . k
    assert torch.linalg.matrix_rank(position) == R
    assert torch.linalg.matrix_rank(q @ k.T + position) == D + R


def gradients_of_embeddings(encoding: str) -> tuple[Tensor, Tensor]:
    """Of tokens (T, E) and positions (n, E), over a sentence in which every word occurs once."""
    model = build(encoding, no_scale_embedding=True)
    words = torch.tensor([5, 9, 23, 14, 31, 2])
    states = model.encoder(words[None], None)["encoder_out"][0]
    states.sin().sum().backward()
    (table,) = position_parameters(model.encoder).values()
    assert table.grad is not None
    return model.encoder.embed_tokens.weight.grad[words], table.grad


def test_theorem_2_gradients_of_token_and_position_embeddings_are_equal() -> None:
    """At the input the two are one sum, so training can never tell them apart."""
    of_tokens, of_positions = gradients_of_embeddings("learned")
    assert of_tokens.abs().min() > 0
    torch.testing.assert_close(of_tokens, of_positions[:6], rtol=0, atol=1e-14)
    assert not of_positions[6:].any()
