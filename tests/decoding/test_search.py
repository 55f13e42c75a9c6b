"""What the search does with rows: who stays, who moves, and which n-grams are there already."""

from __future__ import annotations

import pytest
import torch

from diet_mt.decoding.search import fill_gaps, repeats, stay


def test_first_children_stay_and_the_others_take_free_rows_by_hand() -> None:
    parents = torch.tensor([[0, 0, 2, 0], [3, 2, 1, 0], [1, 1, 1, 1]])
    assert stay(parents).tolist() == [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 2, 3]]


@pytest.mark.parametrize("beams", [2, 5, 10])
def test_every_row_is_taken_once_and_no_first_child_moves(beams: int) -> None:
    parents = torch.randint(0, beams, (200, beams))
    rows = stay(parents)
    assert torch.equal(rows.sort(1).values, torch.arange(beams).expand(200, -1))
    for given, found in zip(parents.tolist(), rows.tolist(), strict=True):
        for child, parent in enumerate(given):
            if parent not in given[:child]:
                assert found[child] == parent


@pytest.mark.parametrize(
    ("going", "expected"),
    [
        ([True, False, True, True], [0, 3, 2]),
        ([False, False, True], [2]),
        ([True, True], [0, 1]),
        ([False, True, False, True, True], [4, 1, 3]),
        ([False], []),
        ([True, False], [0]),
    ],
)
def test_the_last_sentences_fill_the_gaps(going: list[bool], expected: list[int]) -> None:
    assert fill_gaps(going) == expected


@pytest.mark.parametrize("size", [2, 3, 4])
def test_repeats_against_a_loop(size: int) -> None:
    tokens = torch.randint(0, 3, (50, 9))
    found = repeats(tokens, size, 5)
    for row, banned in zip(tokens.tolist(), found.tolist(), strict=True):
        last = row[len(row) - size + 1 :]
        expected = {
            row[start + size - 1]
            for start in range(len(row) - size + 1)
            if row[start : start + size - 1] == last
        }
        assert {word for word, no in enumerate(banned) if no} == expected
    assert not repeats(tokens[:, : size - 1], size, 5).any()
