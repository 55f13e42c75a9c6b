"""How much of each language."""

from __future__ import annotations

import pytest

from diet_mt.bert.mlm_text import copies, shares, times
from diet_mt.errors import UserError


def test_shares_by_hand() -> None:
    """90% and 10%: the square roots are 3 to 1."""
    counts = {"en": 900, "sw": 100}
    assert shares(counts, 0.5) == pytest.approx({"en": 0.75, "sw": 0.25})
    assert shares(counts, 1) == pytest.approx({"en": 0.9, "sw": 0.1})
    assert shares(counts, 0) == pytest.approx({"en": 0.5, "sw": 0.5})


def test_the_most_frequent_language_is_there_once() -> None:
    """900 to 300 is 3 to 1."""
    assert times({"en": 900, "sw": 100}, 0.5) == pytest.approx({"en": 1, "sw": 3})
    assert times({"en": 900}, 0.5) == {"en": 1}


@pytest.mark.parametrize(("count", "wanted"), [(10, 3), (10, 10), (3, 10), (7, 0), (1, 4)])
def test_copies_add_up_and_are_even(count: int, wanted: int) -> None:
    each = [copies(number, count, wanted) for number in range(count)]
    assert sum(each) == wanted
    assert max(each) - min(each) <= 1


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan")])
def test_alpha_has_its_limits(alpha: float) -> None:
    with pytest.raises(UserError, match="must be from 0"):
        shares({"en": 1}, alpha)
