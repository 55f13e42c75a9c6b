"""Runs commands, each in a process of its own, and captures their output."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "diet_mt"
SECONDS = 280  # time limit of one command, on a busy machine

# Overrides settings of the caller: module path, threads, tracebacks and GPUs.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONPATH": "",
    "DIET_MT_TRACEBACK": "",
    "CUDA_VISIBLE_DEVICES": "",
}


@dataclass(frozen=True)
class Command:
    """A command. ``name``: ``train`` for fairseq-train etc., or the path of a script."""

    name: str
    argv: tuple[str, ...]
    stdin: str = ""
    env: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None

    @property
    def entry(self) -> str:
        if self.name.endswith(".py"):
            return self.name
        return f"fairseq_cli.{self.name.replace('-', '_')}:cli_main"

    @property
    def branch(self) -> tuple[str, str]:
        """Module and user dir that a branch of the fork server imports once; "" for no user dir."""
        given = [word for flag, word in pairwise(self.argv) if flag == "--user-dir"]
        user_dir = str(PLUGIN) if given[-1:] == [str(PLUGIN)] else ""
        return self.entry.partition(":")[0], user_dir


def command(
    name: str,
    *argv: Any,
    stdin: str = "",
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> Command:
    """A command whose arguments may be of any type, and lists of arguments."""
    flat: list[str] = []
    for item in argv:
        flat += [str(part) for part in item] if isinstance(item, (list, tuple)) else [str(item)]
    entries = tuple((env or {}).items())
    return Command(name, tuple(flat), stdin, entries, None if cwd is None else str(cwd))


@dataclass(frozen=True)
class Done:
    """A finished command. ``status`` is negative if a signal ended it."""

    command: Command
    status: int
    stdout: str
    stderr: str

    def ok(self) -> Done:
        """This result. Raises AssertionError, with the end of the output, for another status."""
        if self.status != 0:
            raise AssertionError(f"{self.command}\nstatus {self.status}\n{self.tail()}")
        return self

    def tail(self) -> str:
        """The end of both outputs."""
        return f"stdout: ...{self.stdout[-2000:]}\nstderr: ...{self.stderr[-4000:]}"


class Runner:
    """Runs commands through the fork server, which the first command starts."""

    def __init__(self, folder: Path, *modules: str) -> None:
        """``folder``: of inputs and outputs; ``modules``: imported first, from this checkout."""
        self._folder, self._modules = folder, modules
        self._numbers = itertools.count()
        self._server: subprocess.Popen[str] | None = None

    def __call__(self, name: str, *argv: Any, **options: Any) -> Done:
        return self.together(command(name, *argv, **options))[0]

    def together(self, *commands: Command) -> list[Done]:
        """Runs the commands in parallel."""
        if self._server is None:
            self._server = self._start()
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        requests = [self._request(one) for one in commands]
        self._server.stdin.write(json.dumps(requests) + "\n")
        self._server.stdin.flush()
        answer = self._server.stdout.readline()
        if not answer:
            raise RuntimeError(f"the fork server ended with {self._server.wait()}")
        return [
            Done(one, status, _read(request["stdout"]), _read(request["stderr"]))
            for one, status, request in zip(commands, json.loads(answer), requests, strict=True)
        ]

    def _start(self) -> subprocess.Popen[str]:
        server = [sys.executable, str(Path(__file__).with_name("fork_server.py")), *self._modules]
        path = {"PYTHONPATH": str(ROOT)} if self._modules else {}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        return subprocess.Popen(server, text=True, env=os.environ | ENVIRONMENT | path, **pipes)

    def _request(self, one: Command) -> dict[str, Any]:
        stem = self._folder / f"{next(self._numbers):03d}"
        stem.with_suffix(".in").write_text(one.stdin, encoding="utf-8", newline="\n")
        return {
            "name": f"fairseq-{one.name}" if ":" in one.entry else one.name,
            "entry": one.entry,
            "branch": one.branch,
            "argv": one.argv,
            "stdin": str(stem.with_suffix(".in")),
            "stdout": str(stem.with_suffix(".out")),
            "stderr": str(stem.with_suffix(".err")),
            "cwd": one.cwd or str(self._folder),
            "env": dict(one.env),
            "seconds": SECONDS,
        }

    def close(self) -> None:
        if self._server is not None and self._server.stdin is not None:
            self._server.stdin.close()
            self._server.wait(timeout=SECONDS)


def _read(path: str) -> str:
    # newline="": line ends are compared, too.
    with open(path, encoding="utf-8", errors="backslashreplace", newline="") as file:
        return file.read()


def run_alone(
    program: list[str], one: Command, *, cwd: Path, seconds: int = SECONDS, **environment: str
) -> Done:
    """Runs ``program`` with the arguments of a command, in a new process."""
    result = subprocess.run(
        [*program, *one.argv],
        input=one.stdin,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | ENVIRONMENT | environment,
        timeout=seconds,
        check=False,
    )
    return Done(one, result.returncode, result.stdout, result.stderr)


def run_installed(name: str, *argv: Any, cwd: Path) -> Done:
    """Runs fairseq's command ``name`` by the script that pip installed."""
    script = Path(sys.executable).with_name(f"fairseq-{name}")
    return run_alone([str(script)], command(name, *argv), cwd=cwd)


def run_python(program: str, *, cwd: Path, **environment: object) -> str:
    """Standard output of a Python program in ``cwd``, without this checkout in its path."""
    given = {name: str(value) for name, value in environment.items()}
    python = [sys.executable, "-c", program]
    return run_alone(python, command("python"), cwd=cwd, **given).ok().stdout


def start(*words: object, cwd: Path, **environment: str) -> subprocess.Popen[str]:
    """Starts ``diet-mt`` in a process group of its own, which a test may kill."""
    return subprocess.Popen(
        [sys.executable, "-m", "diet_mt", *map(str, words)],
        cwd=cwd,
        env={**os.environ, **ENVIRONMENT, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str], status: int = 0) -> str:
    """Both outputs of a process that ends with ``status``."""
    try:
        out, err = process.communicate(timeout=SECONDS)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == status, (out + err)[-4000:]
    return out + err
