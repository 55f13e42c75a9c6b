"""Positions of tokens, randomized ones, and tables read beyond their end."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from diet_mt.positions import (
    CROSS,
    DECODER,
    ENCODER,
    EXTRAPOLATIONS,
    REFUSE,
    AttentionBias,
    AttentionShape,
    build_position,
)
from diet_mt.positions.absolute import SinusoidalInput, sinusoids
from diet_mt.positions.position_ids import RandomizedPositions
from diet_mt.system.errors import UserError

COUNT, LONGEST, T = 40, 12, 5


def draws(positions: RandomizedPositions, times: int, length: int = T) -> Tensor:
    return torch.stack([positions(length) for _ in range(times)])


def test_a_draw_is_a_sorted_choice_of_all_positions() -> None:
    drawn = draws(RandomizedPositions(COUNT, LONGEST), 2000)
    assert bool((drawn.diff(dim=1) > 0).all())
    assert set(drawn.flatten().tolist()) == set(range(COUNT))


def test_a_draw_for_its_own_length_meets_every_position_equally_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There it is the paper's: T of N without replacement."""
    monkeypatch.setattr(torch, "rand", torch.zeros)
    times = 4000
    drawn = draws(RandomizedPositions(COUNT, T), times)
    counts = drawn.flatten().bincount(minlength=COUNT).double()
    expected = times * T / COUNT
    assert counts.tolist() == pytest.approx([expected] * COUNT, abs=5 * expected**0.5)
    # Place i of T is on average that of the order statistic: (i + 1) (N + 1) / (T + 1) - 1.
    means = [(i + 1) * (COUNT + 1) / (T + 1) - 1 for i in range(T)]
    assert drawn.double().mean(0).tolist() == pytest.approx(means, abs=0.5)


@pytest.mark.parametrize("longest", [20, 400])
def test_training_sees_its_own_density_and_all_of_evaluation(longest: int) -> None:
    """The mean distance of neighbours is between N / T and 1, however long sentences may be."""
    gaps = draws(RandomizedPositions(4000, longest), 3000, 20).double().diff(dim=1).mean(1)
    assert gaps.quantile(0.02) < 1.5
    assert gaps.quantile(0.5) == pytest.approx((4000 / 20) ** 0.5, rel=0.25)
    assert gaps.quantile(0.98) > 150, "4000 / 20 is 200"


def test_evaluation_always_has_the_same() -> None:
    one, other = (RandomizedPositions(COUNT, LONGEST).eval() for _ in range(2))
    fixed = one(LONGEST)
    assert bool((fixed.diff() > 0).all())
    assert fixed.numel() == LONGEST
    assert COUNT > int(fixed[-1]) >= LONGEST
    for length in range(1, LONGEST + 1):
        assert torch.equal(other(length), fixed[:length])
        assert torch.equal(other.at(length - 1, length), fixed[length - 1 : length])
    assert not one.state_dict()


@pytest.mark.parametrize("training", [True, False])
def test_sentences_longer_than_the_fixed_draw(training: bool) -> None:
    with pytest.raises(UserError, match=r"13 tokens.*12 positions"):
        RandomizedPositions(COUNT, LONGEST).train(training)(13)


QUERIES, KEYS = 4, 6  # of the tables
LONG = 15  # of the sentences
any_rule = pytest.mark.parametrize("how", EXTRAPOLATIONS[1:])
any_kind = pytest.mark.parametrize("kind", [ENCODER, DECODER, CROSS])


def stands_for(how: str, position: int, size: int) -> int:
    """The entry of the table that is read at ``position``."""
    return {"clip": min(position, size - 1), "repeat": position % size}[how]


def shape(kind: str, how: str) -> AttentionShape:
    keys = KEYS if kind == CROSS else QUERIES
    return AttentionShape(2, 3, 4, QUERIES, keys, kind, extrapolation=how)


def bias_of(encoding: str, kind: str, how: str) -> AttentionBias:
    torch.manual_seed(2)
    bias = build_position(encoding).attention_positions(shape(kind, how))
    assert isinstance(bias, AttentionBias)
    for parameter in bias.parameters():
        nn.init.normal_(parameter)
    return bias.double()


@torch.no_grad()
@any_rule
@any_kind
@pytest.mark.parametrize("encoding", ["diet-abs", "tupe-abs"])
def test_absolute_tables_are_read_at_another_position(encoding: str, kind: str, how: str) -> None:
    """All entries at once, and each row as a decoding step reads it."""
    bias, known = bias_of(encoding, kind, how), bias_of(encoding, kind, REFUSE)
    keys = known.shape.max_keys
    inside = known(range(QUERIES), range(keys))
    rows, columns = ([stands_for(how, i, size) for i in range(LONG)] for size in (QUERIES, keys))
    expected = inside[..., rows, :][..., columns]
    torch.testing.assert_close(bias(range(LONG), range(LONG)), expected)
    for i in range(LONG):
        step = bias(range(i, i + 1), range(i + 1))
        torch.testing.assert_close(step, expected[..., i : i + 1, : i + 1])


@torch.no_grad()
@any_rule
@any_kind
def test_distances_are_read_at_another_distance(kind: str, how: str) -> None:
    bias = bias_of("diet-rel", kind, how)
    keys = bias.shape.max_keys
    tables = bias.stacked("by_offset")  # (L, H, n_T + n_S - 1), distance 0 in column n_S - 1
    whole = bias(range(LONG), range(LONG))
    for i in range(LONG):
        for j in range(LONG):
            far = stands_for(how, i - j, QUERIES) if i >= j else -stands_for(how, j - i, keys)
            assert torch.equal(whole[..., i, j], tables[..., far + keys - 1])
        assert torch.equal(bias(range(i, i + 1), range(LONG)), whole[..., i : i + 1, :])


@torch.no_grad()
@any_rule
@pytest.mark.parametrize(
    "encoding", ["learned", "concat", "linformer", "sinusoidal", "shape", "cape"]
)
def test_rows_at_the_input_and_of_mixed_keys(encoding: str, how: str) -> None:
    """Learned rows are those of another position; sinusoids continue."""
    built = build_position(encoding)
    added = built.input_positions(QUERIES, 16)
    assert added is not None
    added.extrapolation = how
    rows = [stands_for(how, i, QUERIES) for i in range(LONG)]
    learned = not isinstance(added, SinusoidalInput)
    expected = added.table()[rows] if learned else sinusoids(LONG, 16)
    assert torch.equal(added.eval()(torch.ones(1, LONG), range(LONG))[0], expected)
    assert torch.equal(added.rows(range(9, 10))[0], expected[9:10])
    if encoding == "shape":  # in training, from some position up to the shift on
        added.train().shift = 2
        known = sinusoids(LONG + 2, 16)
        starts = [known[first : first + LONG] for first in range(3)]
        for sentence in added(torch.ones(6, LONG), range(LONG)):
            assert any(torch.equal(sentence, start) for start in starts)
    if built.mixes_keys:
        positions = built.attention_positions(shape(ENCODER, how))
        assert positions is not None
        layers = positions.for_layers(range(LONG), range(LONG))
        for terms, table in zip(layers, positions.tables(), strict=True):
            for name in ("of_keys", "of_values"):
                assert torch.equal(getattr(terms, name), table.get_parameter(name)[:, rows])
