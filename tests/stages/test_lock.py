"""One run at a time."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest

from diet_mt.stages import lock


def test_a_second_run_waits_and_then_gives_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (os.open(tmp_path, os.O_RDONLY) for _ in range(2))
    try:
        assert lock.main([str(first), "0", "there"]) == 0
        assert lock.main([str(second), "0", "there"]) == 2
        assert capsys.readouterr().err == (
            "error: there: another run is at work on it; wait for its end\n"
        )
        threading.Timer(0.3, fcntl.flock, (first, fcntl.LOCK_UN)).start()
        assert lock.main([str(second), "30", "there"]) == 0
        assert "there: waiting for another run" in capsys.readouterr().err
    finally:
        os.close(first)
        os.close(second)
