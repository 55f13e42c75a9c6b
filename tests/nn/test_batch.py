"""Right-padded form, key padding, and rows of a decoding batch by sentence."""

from __future__ import annotations

import pytest
import torch

from diet_mt.nn.batch import key_padding_of, regroup, right_pad

from ..toy import PAD, collate


def test_left_padding_moves_behind_and_back_by_hand() -> None:
    tokens = torch.tensor([[PAD, PAD, 5, 6], [7, 8, 9, 4], [PAD, PAD, PAD, PAD], [PAD, 3, 2, 1]])
    batch = right_pad(tokens, PAD)
    assert batch.tokens.tolist() == [[5, 6, 1, 1], [7, 8, 9, 4], [1, 1, 1, 1], [3, 2, 1, 1]]
    assert batch.padding is not None
    assert batch.padding.tolist() == (batch.tokens == PAD).tolist()
    assert batch.columns is not None
    assert batch.columns[0].tolist() == [2, 3, 0, 1]
    assert torch.equal(batch.restore(batch.tokens.unsqueeze(-1)).squeeze(-1), tokens)
    assert torch.equal(batch.take(tokens.unsqueeze(-1)).squeeze(-1), batch.tokens)


def test_without_left_padding_nothing_moves() -> None:
    full = collate([[5, 6, 7], [8, 9, 4]])
    assert right_pad(full, PAD) == (full, None, None)
    right = collate([[5, 6, 7], [8]])
    batch = right_pad(right, PAD)
    assert batch.tokens is right
    assert batch.columns is None
    values = torch.randn(2, 3, 4)
    assert batch.take(values) is batch.restore(values) is values


def test_a_row_of_padding_alone_is_not_masked() -> None:
    padding = torch.tensor([[False, False, True], [True, True, True], [False, False, False]])
    mask = key_padding_of(padding)
    assert mask is not None
    assert mask.tolist() == [[False, False, True], [False] * 3, [False] * 3]
    assert key_padding_of(None) is None


@pytest.mark.parametrize(
    ("order", "rows", "beams", "length", "sentences"),
    [
        # Nothing moves, or only within sentences: no work.
        ([0, 1, 2], 3, 1, 1, None),
        ([1, 0, 2, 5, 5, 3], 6, 3, 3, None),
        # The first expansion: each sentence gets as many rows as there are beams.
        ([0, 0, 0, 1, 1, 1], 2, 1, 3, [0, 1]),
        # Sentence 1 of 3 is finished, or sentences change places; beams are reordered as well.
        ([1, 0, 4, 4], 6, 2, 2, [0, 2]),
        ([5, 4, 0, 0, 3, 2], 6, 2, 2, [2, 0, 1]),
        # Irregular: every row becomes a sentence of its own.
        ([0, 2, 1, 3], 4, 2, 1, [0, 1, 0, 1]),
        ([0, 1, 2], 4, 2, 1, [0, 0, 1]),
        ([0, 0, 0, 1, 1, 1, 2], 3, 1, 1, [0, 0, 0, 1, 1, 1, 2]),
    ],
)
def test_regrouping_by_hand(
    order: list[int], rows: int, beams: int, length: int, sentences: list[int] | None
) -> None:
    new_length, moved = regroup(torch.tensor(order), rows, beams)
    assert new_length == length
    assert (None if moved is None else moved.tolist()) == sentences


def test_any_order_leaves_each_row_in_its_sentence() -> None:
    rows, beams = 12, 3
    for _ in range(200):
        order = torch.randint(0, rows, (int(torch.randint(1, 15, ())),))
        length, moved = regroup(order, rows, beams)
        sentences = torch.arange(rows // beams) if moved is None else moved
        assert sentences.repeat_interleave(length).tolist() == (order // beams).tolist()
