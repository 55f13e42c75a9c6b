"""Windows cover the context and overlap."""

from __future__ import annotations

from itertools import pairwise

import pytest

from diet_mt.bert.questions.windows import WindowSizes, windows
from diet_mt.errors import UserError


def test_windows_worked_out_by_hand() -> None:
    assert windows(10, 4, 3) == [(0, 4), (3, 7), (6, 10)]
    assert windows(11, 4, 3) == [(0, 4), (3, 7), (6, 10), (9, 11)]
    assert windows(8, 4, 4) == [(0, 4), (4, 8)]
    assert windows(4, 4, 2) == [(0, 4)]
    assert windows(0, 4, 2) == [(0, 0)]


def test_every_piece_is_in_a_window_and_neighbours_share() -> None:
    for pieces in range(40):
        for room in range(1, 12):
            for stride in range(1, room + 1):
                found = windows(pieces, room, stride)
                covered = {piece for begin, end in found for piece in range(begin, end)}
                assert covered == set(range(pieces))
                assert all(0 <= end - begin <= room for begin, end in found)
                for (begin, end), (later, last) in pairwise(found):
                    assert later == begin + stride
                    assert end - later == room - stride
                    assert last > end


def test_an_answer_as_long_as_what_windows_share_is_whole_in_one() -> None:
    found = windows(100, 12, 5)
    for begin in range(100 - 7):
        assert any(first <= begin and begin + 7 <= last for first, last in found)


def test_sizes_that_would_leave_gaps_are_refused() -> None:
    assert WindowSizes(20, 8, 8).room(8) == 8
    with pytest.raises(UserError, match="7 are left for the context, fewer than the stride 8"):
        WindowSizes(19, 8, 8)
