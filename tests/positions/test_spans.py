"""Randomized positions: which ones are drawn, and when."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diet_mt.errors import UserError
from diet_mt.positions.spans import (
    RandomizedPositions,
    TokenPositions,
    as_tensor,
    need_positions,
    tokens_in,
)

COUNT, LONGEST, T = 40, 12, 5


def draws(positions: RandomizedPositions, times: int, length: int = T) -> Tensor:
    return torch.stack([positions(length) for _ in range(times)])


def test_a_draw_is_a_sorted_choice_of_all_positions() -> None:
    torch.manual_seed(1)
    found = draws(RandomizedPositions(COUNT, LONGEST), 2000)
    assert bool((found.diff(dim=1) > 0).all())
    assert set(found.flatten().tolist()) == set(range(COUNT))


def test_a_draw_for_its_own_length_meets_every_position_equally_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There it is the paper's: T of N without replacement."""
    monkeypatch.setattr(torch, "rand", torch.zeros)
    torch.manual_seed(1)
    times = 4000
    found = draws(RandomizedPositions(COUNT, T), times)
    counts = found.flatten().bincount(minlength=COUNT).double()
    expected = times * T / COUNT
    assert counts.tolist() == pytest.approx([expected] * COUNT, abs=5 * expected**0.5)
    # Place i of T is on average that of the order statistic: (i + 1) (N + 1) / (T + 1) - 1.
    means = [(i + 1) * (COUNT + 1) / (T + 1) - 1 for i in range(T)]
    assert found.double().mean(0).tolist() == pytest.approx(means, abs=0.5)


@pytest.mark.parametrize("longest", [20, 400])
def test_training_sees_its_own_density_and_all_there_may_be_outside_of_it(longest: int) -> None:
    """The mean distance of neighbours is between N / T and 1, however long sentences may be."""
    torch.manual_seed(1)
    gaps = draws(RandomizedPositions(4000, longest), 3000, 20).double().diff(dim=1).mean(1)
    assert gaps.quantile(0.02) < 1.5
    assert gaps.quantile(0.5) == pytest.approx((4000 / 20) ** 0.5, rel=0.25)
    assert gaps.quantile(0.98) > 150, "4000 / 20 is 200"


def test_outside_of_training_they_are_always_the_same() -> None:
    one, other = (RandomizedPositions(COUNT, LONGEST).eval() for _ in range(2))
    found = one(LONGEST)
    assert bool((found.diff() > 0).all())
    assert found.numel() == LONGEST
    assert COUNT > int(found[-1]) >= LONGEST
    for length in range(1, LONGEST + 1):
        assert torch.equal(other(length), found[:length])
        assert torch.equal(other.at(length - 1, length), found[length - 1 : length])
    assert not one.state_dict()


def test_without_them_tokens_follow_one_another() -> None:
    plain, device = TokenPositions(), torch.device("cpu")
    assert plain(5) == range(5)
    assert plain.at(3, 7) == range(3, 7)
    for span in (range(3, 7), torch.tensor([3, 4, 5, 6])):
        assert as_tensor(span, device).tolist() == [3, 4, 5, 6]
        assert tokens_in(span) == 4


def test_a_table_must_have_the_positions_of_a_range() -> None:
    need_positions(range(2, 5), 5, may_go_on=True)
    need_positions(torch.tensor([2, 9]), 5, may_go_on=True)  # which a table is made for
    with pytest.raises(UserError, match=r"6 tokens is longer than the 5 .*--beyond-table"):
        need_positions(range(2, 6), 5, may_go_on=True)


def test_the_seed_repeats_them() -> None:
    positions = RandomizedPositions(COUNT, LONGEST)
    torch.manual_seed(3)
    first = draws(positions, 3)
    torch.manual_seed(3)
    assert torch.equal(draws(positions, 3), first)
    assert not torch.equal(first[0], first[1])


@pytest.mark.parametrize("training", [True, False])
def test_longer_sentences_are_refused(training: bool) -> None:
    with pytest.raises(UserError, match=r"13 tokens.*12 positions"):
        RandomizedPositions(COUNT, LONGEST).train(training)(13)
