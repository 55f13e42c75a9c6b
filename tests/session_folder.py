"""A folder that all processes of one run of the tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def session_folder(factory: pytest.TempPathFactory) -> Path:
    """Under xdist each worker has a folder of its own inside that of the run."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
