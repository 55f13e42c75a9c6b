"""The best continuations equal those of the whole vocabulary sorted."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from diet_mt.decoding import candidates
from diet_mt.decoding.candidates import Limits, Vocabulary
from diet_mt.decoding.search import fill_gaps, repeats

B, K, E = 7, 3, 5
PAD, UNK, EOS = 1, 3, 2


def output(size: int, bias: bool) -> nn.Linear:
    torch.manual_seed(size)
    return nn.Linear(E, size, bias=bias).double()


def expected(
    layer: nn.Linear, features: Tensor, scores: Tensor, count: int, limits: Limits
) -> tuple[Tensor, Tensor, Tensor]:
    logs = layer(features).log_softmax(-1)
    logs[:, UNK] -= limits.unk_penalty
    excluded = {PAD, *limits.forbidden}
    if limits.only is not None:
        excluded |= set(range(logs.size(1))) - {limits.only}
    logs[:, list(excluded)] = -math.inf
    totals = (logs.view(B, -1, logs.size(1)) + scores[:, :, None]).flatten(1)
    values, places = totals.topk(count)
    return values, places % logs.size(1), places // logs.size(1)


LIMITS = Limits(PAD, UNK), Limits(PAD, UNK, 0.7), Limits(PAD, UNK, forbidden=(EOS, 6))


@pytest.mark.usefixtures("either_memory")
@pytest.mark.parametrize("size", [9, 16, 17, 44, 1009])
@torch.no_grad()
def test_against_the_whole_vocabulary(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for bias, rows, limits in product((False, True), (3, 6, 1000), LIMITS):
        monkeypatch.setattr(candidates, "ROWS", rows)
        layer = output(size, bias)
        features, scores = torch.randn(B * K, E).double(), torch.randn(B, K).double()
        actual = Vocabulary(layer).best(features, scores, 2 * K, limits)
        wanted = expected(layer, features, scores, 2 * K, limits)
        case = f"bias {bias}, {rows} rows at a time, {limits}"
        torch.testing.assert_close(actual[0], wanted[0], rtol=0, atol=1e-12, msg=case)
        assert torch.equal(actual[1], wanted[1]), case
        assert torch.equal(actual[2], wanted[2]), case


@pytest.mark.usefixtures("either_memory")
@torch.no_grad()
def test_one_entry_left_leaves_one_for_each_hypothesis() -> None:
    layer = output(44, False)
    features, scores = torch.randn(B * K, E).double(), torch.randn(B, K).double()
    limits = Limits(PAD, UNK, only=EOS)
    values, entries, parents = Vocabulary(layer).best(features, scores, 2 * K, limits)
    wanted = expected(layer, features, scores, K, limits)
    torch.testing.assert_close(values[:, :K], wanted[0], rtol=0, atol=1e-12)
    assert entries[:, :K].eq(EOS).all()
    assert torch.equal(parents[:, :K], wanted[2])
    assert values[:, K:].eq(-math.inf).all()
    assert entries.lt(44).all()


@pytest.mark.usefixtures("either_memory")
@torch.no_grad()
def test_forced_and_banned_entries() -> None:
    layer = output(44, False)
    features, scores = torch.randn(B * K, E).double(), torch.randn(B, K).double()
    forced = torch.tensor([8, PAD, 9, PAD, 10, 11, PAD])
    banned = torch.zeros(B * K, 44, dtype=torch.bool)
    banned[:, 20:30] = True
    limits = Limits(PAD, UNK, forced=forced, banned=banned)
    values, entries, _ = Vocabulary(layer).best(features, scores, 2 * K, limits)
    possible = values.ne(-math.inf)
    for sentence, entry in enumerate(forced.tolist()):
        chosen = entries[sentence][possible[sentence]].tolist()
        if entry == PAD:
            assert len(chosen) == 2 * K
            assert not any(20 <= word < 30 for word in chosen)
        else:
            assert chosen == [entry] * K


@torch.no_grad()
def test_half_precision_is_normalized_in_float32() -> None:
    layer = output(1009, False).to(torch.bfloat16)
    features = torch.randn(B * K, E).to(torch.bfloat16)
    values, _, _ = Vocabulary(layer).best(features, torch.zeros(B, K), 5, Limits(PAD, UNK))
    assert values.dtype == torch.float32


def test_the_last_sentences_fill_the_gaps() -> None:
    for going, expected in (
        ([True, False, True, True], [0, 3, 2]),
        ([False, False, True], [2]),
        ([True, True], [0, 1]),
        ([False, True, False, True, True], [4, 1, 3]),
        ([False], []),
        ([True, False], [0]),
    ):
        assert fill_gaps(going) == expected


@pytest.mark.parametrize("size", [2, 3, 4])
def test_repeats_against_a_loop(size: int) -> None:
    tokens = torch.randint(0, 3, (50, 9))
    repeated = repeats(tokens, size, 5)
    for row, banned in zip(tokens.tolist(), repeated.tolist(), strict=True):
        last = row[len(row) - size + 1 :]
        expected = {
            row[start + size - 1]
            for start in range(len(row) - size + 1)
            if row[start : start + size - 1] == last
        }
        assert {word for word, no in enumerate(banned) if no} == expected
    assert not repeats(tokens[:, : size - 1], size, 5).any()
