"""How many batches make an update, and in what precision, for machines that are not here."""

from __future__ import annotations

import pytest

from diet_mt.errors import UserError
from diet_mt.training.devices import Batches, choose, split_update

AMPERE, TURING, HOPPER = (8, 0), (7, 5), (9, 0)


@pytest.mark.parametrize(
    ("ceiling", "devices", "expected"),
    [
        (8192, 1, Batches(6250, 4, 25000)),
        (8192, 2, Batches(6250, 2, 25000)),
        (8192, 8, Batches(3125, 1, 25000)),
        (4096, 8, Batches(3125, 1, 25000)),
        (4096, 1, Batches(3571, 7, 24997)),
        (2000, 8, Batches(1562, 2, 24992)),
        (25000, 1, Batches(25000, 1, 25000)),
        (24999, 1, Batches(12500, 2, 25000)),
        (8192, 16, Batches(1562, 1, 24992)),
    ],
)
def test_an_update_of_25000_tokens(ceiling: int, devices: int, expected: Batches) -> None:
    assert split_update(25000, ceiling, devices) == expected


def test_an_update_is_the_same_for_any_number_of_gpus() -> None:
    for devices in range(1, 130):
        found = split_update(25000, 4096, devices)
        assert found.tokens <= 4096
        assert found.total == found.tokens * found.per_update * devices
        assert 0 <= 25000 - found.total < found.per_update * devices
        # With one batch less they would not fit.
        assert (found.per_update - 1) * devices * 4096 < 25000


@pytest.mark.parametrize(
    ("gpus", "precision", "seen", "expected"),
    [
        ("auto", "auto", [], (0, "fp32")),
        ("auto", "auto", [AMPERE] * 8, (8, "bf16")),
        ("auto", "auto", [HOPPER], (1, "bf16")),
        ("auto", "auto", [TURING], (1, "fp16")),
        ("auto", "auto", [AMPERE, TURING], (2, "fp16")),
        ("auto", "fp16", [AMPERE], (1, "fp16")),
        ("1", "auto", [AMPERE, TURING], (1, "bf16")),
        ("0", "auto", [AMPERE], (0, "fp32")),
        ("8", "fp16", [], (8, "fp16")),
    ],
)
def test_what_the_user_wants_goes_first_and_the_rest_is_what_all_gpus_have(
    gpus: str, precision: str, seen: list[tuple[int, int]], expected: tuple[int, str]
) -> None:
    assert choose(gpus, precision, seen) == expected


@pytest.mark.parametrize(
    ("gpus", "complaint"), [("eight", "a number or auto"), ("8", "8 GPUs asked for, 1 found here")]
)
def test_what_cannot_be_known_is_asked_for(gpus: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        choose(gpus, "auto", [AMPERE])


@pytest.mark.parametrize(
    ("numbers", "complaint"),
    [((7, 8192, 8), "7 cannot be shared by 8"), ((25000, 0, 1), "of a device: must be at least 1")],
)
def test_what_cannot_be_shared(numbers: tuple[int, int, int], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        split_update(*numbers)
