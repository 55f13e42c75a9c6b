"""The best spans, against a search that tries each of them."""

from __future__ import annotations

import numpy as np
import pytest

from diet_mt.bert.questions.decoding import Candidate, best_spans, candidates_of, merge, no_answer


def tried_one_by_one(
    start: np.ndarray, end: np.ndarray, longest: int, count: int
) -> list[tuple[float, int, int]]:
    found = []
    for i in range(len(start)):
        for j in range(i, min(i + longest, len(start))):
            score = float(start[i]) + float(end[j])
            if score > float("-inf"):
                found.append((score, i, j))
    return sorted(found, key=lambda each: (-each[0], each[1], each[2]))[:count]


@pytest.mark.parametrize("length", [0, 1, 2, 5, 17])
@pytest.mark.parametrize("longest", [1, 2, 4, 30])
def test_against_brute_force(length: int, longest: int) -> None:
    draw = np.random.default_rng(length * 100 + longest)
    for count in (1, 3, 20, 1000):
        # Whole numbers: many scores are equal.
        for start, end in (
            draw.normal(size=(2, length)).astype(np.float32),
            draw.integers(-2, 3, size=(2, length)).astype(np.float32),
        ):
            start[draw.random(length) < 0.2] = -np.inf
            found = best_spans(start, end, longest, count)
            assert found == tried_one_by_one(start, end, longest, count)


def test_no_answer_is_longer_than_allowed_or_ends_before_it_begins() -> None:
    start, end = np.array([0.0, 0, 9]), np.array([9.0, 0, 0])
    for longest in (1, 2, 3):
        for _, first, last in best_spans(start, end, longest, 99):
            assert first <= last < first + longest


def test_an_answer_stands_in_the_context_alone() -> None:
    # <s> question </s> </s> two pieces </s>, and great logits everywhere else.
    start, end = np.full(7, 50.0), np.full(7, 50.0)
    start[4:6], end[4:6] = (1, 2), (3, 4)
    extents = np.array([[-1, -1]] * 4 + [[0, 3], [4, 6]] + [[-1, -1]])
    found = candidates_of(start, end, extents, 4, max_answer=5, count=9)
    assert found == [
        Candidate(4, 6, 2.0, 4.0),
        Candidate(0, 6, 1.0, 4.0),
        Candidate(0, 3, 1.0, 3.0),
    ]
    assert no_answer(start, end) == Candidate(0, 0, 50.0, 50.0)


def test_pieces_without_characters_begin_and_end_nothing() -> None:
    start = end = np.array([0.0, 0, 0, 0, 9, 1, 0])
    extents = np.array([[-1, -1]] * 4 + [[2, 2], [2, 5], [-1, -1]])
    assert candidates_of(start, end, extents, 4) == [Candidate(2, 5, 1.0, 1.0)]
    # A context of which nothing is left has no answers.
    assert candidates_of(start[:5], end[:5], extents[[0, 1, 2, 3, 6]], 4) == []


def test_windows_are_merged_by_characters() -> None:
    low, high = Candidate(4, 9, 1.0, 1.0), Candidate(4, 9, 2.0, 1.5)
    other, same = Candidate(0, 3, 1.0, 2.5), Candidate(1, 3, 1.0, 2.5)
    # All three score 3.5: the one that begins first comes first.
    assert merge([low, same, other, high]) == [other, same, high]
    assert merge([low, same, other, high], count=2) == [other, same]
    assert merge([]) == []
