"""Fixtures of the command tests. With pytest-xdist all workers share one corpus and its models."""

from __future__ import annotations

import pytest

from ..processes import session_folder
from .encoders import Encoders
from .runner import Runner
from .workshop import Workshop


@pytest.fixture(scope="session")
def workshop(runner: Runner, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    folder = session_folder(tmp_path_factory) / "workshop"
    folder.mkdir(exist_ok=True)
    return Workshop(folder, runner)


@pytest.fixture(scope="session")
def encoders(workshop: Workshop) -> Encoders:
    return Encoders(workshop.folder, workshop.run)
