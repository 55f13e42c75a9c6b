"""What all tests share."""

from __future__ import annotations

import pytest
import torch

# Test processes run side by side, and everything here is small: threads would only wait.
torch.set_num_threads(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-golden",
        action="store_true",
        help="write tests/golden/*.json from the code as it is, instead of comparing with them",
    )


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Every test draws the same random numbers, alone or in any order."""
    torch.manual_seed(0)
