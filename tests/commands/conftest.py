"""Fixtures of the command tests. With pytest-xdist all workers share one corpus and its models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from ..session_folder import session_folder
from .encoders import Encoders
from .runner import Runner
from .workshop import Workshop


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    made = Runner(tmp_path_factory.mktemp("processes"))
    yield made
    made.close()


@pytest.fixture
def forked(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command of ours starts runs by the fork server, in a fraction of the time."""

    def run_child(
        words: list[str], *, out: IO[bytes], err: IO[bytes] | None = None, **_: Any
    ) -> int:
        name = words[2].removeprefix("fairseq_cli.")
        done = runner(name, *words[3:], cwd=Path.cwd())
        out.write(done.stdout.encode())
        (err or out).write(done.stderr.encode())
        return done.status

    for module in ("training.run", "evaluation.evaluate"):
        monkeypatch.setattr(f"diet_mt.{module}.run_child", run_child)


@pytest.fixture(scope="session")
def workshop(runner: Runner, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    folder = session_folder(tmp_path_factory) / "workshop"
    folder.mkdir(exist_ok=True)
    return Workshop(folder, runner)


@pytest.fixture(scope="session")
def encoders(workshop: Workshop) -> Encoders:
    return Encoders(workshop)
