"""What the search does with rows: which sentence goes where, which n-grams are there already."""

from __future__ import annotations

import pytest
import torch

from diet_mt.decoding.search import fill_gaps, repeats


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
