"""The parent's side of a measurement: one worker process for each system, asked over pipes.

A worker is ``bench/process/__main__.py``, run by its path; see ``bench/process/worker.py`` for what
it answers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import UserError
from . import process

_PROGRAM = Path(process.__file__).with_name("__main__.py")


class Worker:
    """One process with one system."""

    def __init__(
        self, name: str, job: Mapping[str, Any], environment: Mapping[str, str | None]
    ) -> None:
        self.name = name
        wanted = {**os.environ, **environment}
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, str(_PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
            env={key: value for key, value in wanted.items() if value is not None},
        )
        self._send(job)

    def ask(self, what: str, kind: str) -> dict[str, Any]:
        """Its answer to one line. Raises UserError with its last line where it has died."""
        self._send({what: kind})
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            status = self.process.wait()
            self._errors.seek(0)
            last = (self._errors.read().strip().split("\n") or [""])[-1]
            raise UserError(f"{self.name}: its process ended with {status} ({last})")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def turn(self, kind: str) -> float:
        """Seconds of one turn."""
        return float(self.ask("turn", kind)["seconds"])

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # it has died: the answer that does not come says so
            print(json.dumps(message), file=self.process.stdin, flush=True)

    def close(self) -> None:
        """Ends the process, which may be at work."""
        self.process.kill()
        self.process.communicate()
        self._errors.close()


@contextmanager
def workers(
    jobs: Mapping[str, tuple[Mapping[str, Any], Mapping[str, str | None]]],
) -> Iterator[dict[str, Worker]]:
    """A worker for each name with its job and its environment; all are ended at the end."""
    with ExitStack() as stack:
        found = {}
        for name, (job, environment) in jobs.items():
            found[name] = Worker(name, job, environment)
            stack.callback(found[name].close)
        yield found
