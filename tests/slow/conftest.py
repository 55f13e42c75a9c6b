"""What the slow tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..commands.runner import Runner
from .running import MODULES


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    made = Runner(tmp_path_factory.mktemp("server"), *MODULES)
    yield made
    made.close()
