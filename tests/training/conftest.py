"""One place for all tests of a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from .places import write_place


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training")
    write_place(folder)
    return folder
