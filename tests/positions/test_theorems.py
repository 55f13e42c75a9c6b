"""The two theorems of Chen et al. 2021 as small numeric experiments on the project's own modules."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from diet_mt.positions import AttentionShape, build_position

N, D, R, E = 10, 3, 4, 8  # d_h = 3 < d_p = 4, d = 8, n >= d_h + d_p


def projected(x: Tensor) -> tuple[Tensor, Tensor]:
    """X W_Q and X W_K, (n, D) each."""
    w_q, w_k = torch.randn(2, E, D, dtype=torch.float64)
    return x @ w_q, x @ w_k


def test_theorem_1_positions_at_the_input_leave_the_rank_at_the_head_size() -> None:
    term = build_position("learned").input_term(N, E)
    assert term is not None
    x = torch.randn(N, E, dtype=torch.float64) + term.double().rows(0, N)[0]
    q, k = projected(x)
    assert torch.linalg.matrix_rank(q @ k.T) == D


def test_theorem_1_positions_in_the_logits_raise_the_rank_to_the_sum() -> None:
    bias = build_position("diet-abs", rank=R).attention_bias(AttentionShape(1, 1, D, N, N))
    assert bias is not None
    q, k = projected(torch.randn(N, E, dtype=torch.float64))
    position = bias.double()(0, N, N)[0, 0] * 1e4  # from the initial 0.0004 to the size of q . k
    assert torch.linalg.matrix_rank(position) == R
    assert torch.linalg.matrix_rank(q @ k.T + position) == D + R


def test_theorem_2_gradients_of_token_and_position_embeddings_are_equal() -> None:
    """At the input the two are one sum, so they can never be told apart by training."""
    term = build_position("learned").input_term(N, E)
    assert term is not None
    term.double()
    x = torch.randn(N, E, dtype=torch.float64, requires_grad=True)
    q, k = projected(x + term.rows(0, N)[0])
    F.cross_entropy(torch.softmax(q @ k.T, dim=1) @ (x + term.table()), torch.arange(N) % E).backward()
    (table,) = term.parameters()
    assert x.grad is not None
    assert table.grad is not None
    assert x.grad.abs().sum() > 0
    torch.testing.assert_close(x.grad, table.grad, rtol=0, atol=1e-15)


def test_theorem_2_does_not_bind_positions_in_the_logits() -> None:
    """diet-abs of rank E: the same shapes, and gradients of its own."""
    bias = build_position("diet-abs", rank=E).attention_bias(AttentionShape(1, 1, D, N, N))
    assert bias is not None
    bias.double()
    x = torch.randn(N, E, dtype=torch.float64, requires_grad=True)
    q, k = projected(x)
    F.cross_entropy(torch.softmax(q @ k.T + bias(0, N, N)[0, 0], dim=1) @ x, torch.arange(N) % E).backward()
    for table in bias.parameters():
        assert table.grad is not None
        assert x.grad is not None
        assert not torch.allclose(x.grad, table.grad[0], rtol=1e-3, atol=1e-9)
