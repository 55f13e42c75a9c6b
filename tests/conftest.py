"""Fixtures and settings of all tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from .commands.runner import Runner


def pytest_configure(config: pytest.Config) -> None:
    """Loads torch and fairseq, except in the controller of pytest-xdist, which runs no test."""
    if config.getoption("numprocesses", 0) and not hasattr(config, "workerinput"):
        return
    import torch

    from diet_mt import plugin as plugin  # fairseq as its commands have it with our --user-dir

    # Test processes run side by side, and everything here is small: threads would only wait.
    torch.set_num_threads(1)
    # A shell lets its background jobs ignore it, and so would every process that a test starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-golden",
        action="store_true",
        help="write tests/golden/*.json from the code as it is, instead of comparing with them",
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Counts of the hostile tests."""
    tried = held = 0
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, ()):
            if "hostile" in report.keywords and report.when == "call":
                # A test with several attacks says how many.
                count = sum(int(n) for name, n in report.user_properties if name == "hostile") or 1
                tried += count
                held += count if report.passed else 0
    if tried:
        ending = ", with nothing lost" if held == tried else ""
        terminalreporter.write_line(f"hostile: {tried} tried, {held} held{ending}")


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Every test draws the same random numbers, alone or in any order."""
    import torch

    torch.manual_seed(0)


@pytest.fixture(params=["kernels", "operators"])
def either_memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beam search with our loops in C++ (under ``torch.no_grad``), then with torch's operators."""
    import torch

    from diet_mt import kernels

    with torch.no_grad():
        assert kernels.serve(torch.empty(0)), "the kernels are not compiled: make setup"
    if request.param == "operators":
        monkeypatch.setattr(kernels, "serve", lambda x: False)


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    made = Runner(tmp_path_factory.mktemp("processes"))
    yield made
    made.close()


@pytest.fixture
def forked(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command of ours starts runs by the fork server, in a fraction of the time."""

    def run_child(words: list[str], *, out: IO[bytes], **_: Any) -> int:
        name = words[2].removeprefix("fairseq_cli.")
        done = runner(name, *words[3:], cwd=Path.cwd())
        out.write(done.stdout.encode())
        out.write(done.stderr.encode())
        return done.status

    monkeypatch.setattr("diet_mt.experiments.train.run_child", run_child)
