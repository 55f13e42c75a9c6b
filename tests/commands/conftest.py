"""Fixtures of the command tests. With pytest-xdist all workers share one corpus and its models."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .encoders import Encoders
from .runner import Runner
from .workshop import Workshop


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    made = Runner(tmp_path_factory.mktemp("processes"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def workshop(runner: Runner, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    base = tmp_path_factory.getbasetemp()
    # Under xdist each worker has a folder of its own inside that of the run.
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder: Path = base / "workshop"
    folder.mkdir(exist_ok=True)
    return Workshop(folder, runner)


@pytest.fixture(scope="session")
def encoders(workshop: Workshop) -> Encoders:
    return Encoders(workshop)
