"""Starts commands, each in a process of its own, and reads what they print."""

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
SECONDS = 280  # for one command, on a busy machine

# Nothing of the caller's may reach the commands: neither the place of modules nor the threads.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONPATH": "",
    "DIET_MT_TRACEBACK": "",
    "CUDA_VISIBLE_DEVICES": "",
}


@dataclass(frozen=True)
class Command:
    """``name`` is fairseq's (``train`` for fairseq-train), ``steps``, or the path of a script."""

    name: str
    argv: tuple[str, ...]
    stdin: str = ""
    env: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None

    @property
    def entry(self) -> str:
        if self.name.endswith(".py") or self.name == "steps":
            return self.name
        return f"fairseq_cli.{self.name.replace('-', '_')}:cli_main"

    @property
    def branch(self) -> tuple[str, str]:
        """Module and user dir that a branch of the server imports once, if the latter is ours."""
        steps = json.loads(self.argv[0]) if self.name == "steps" else [(self.entry, *self.argv)]
        module, *words = steps[0]
        given = [word for flag, word in pairwise(words) if flag == "--user-dir"]
        return module.partition(":")[0], str(PLUGIN) if given[-1:] == [str(PLUGIN)] else ""


def command(
    name: str,
    *argv: Any,
    stdin: str = "",
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> Command:
    """A command with arguments of any type and lists of them, flattened."""
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
        """Itself, if the command succeeded; the failure otherwise is the test's."""
        if self.status != 0:
            raise AssertionError(f"{self.command}\nstatus {self.status}\n{self.tail()}")
        return self

    def tail(self) -> str:
        return f"stdout: ...{self.stdout[-2000:]}\nstderr: ...{self.stderr[-4000:]}"


class Runner:
    """Runs commands through the fork server, whose start is delayed to the first command."""

    def __init__(self, folder: Path, *modules: str) -> None:
        """``modules``: imported before the first command, from this checkout."""
        self._folder, self._modules = folder, modules
        self._numbers = itertools.count()
        self._server: subprocess.Popen[str] | None = None

    def __call__(self, name: str, *argv: Any, **options: Any) -> Done:
        return self.together(command(name, *argv, **options))[0]

    def together(self, *commands: Command) -> list[Done]:
        """Runs the commands side by side."""
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
        own = {"PYTHONPATH": str(ROOT)} if self._modules else {}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        return subprocess.Popen(server, text=True, env=os.environ | ENVIRONMENT | own, **pipes)

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
    # newline="": what a command prints is compared as it is.
    with open(path, encoding="utf-8", errors="backslashreplace", newline="") as file:
        return file.read()


def run_alone(
    program: list[str], one: Command, *, cwd: Path, seconds: int = SECONDS, **environment: str
) -> Done:
    """The command in a new interpreter, by a program that takes its arguments."""
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
    """The command as a user starts it: the script that pip installed, a new interpreter."""
    script = Path(sys.executable).with_name(f"fairseq-{name}")
    return run_alone([str(script)], command(name, *argv), cwd=cwd)


def run_python(program: str, *, cwd: Path, **environment: object) -> str:
    """What a program prints, run by itself in ``cwd`` with nothing of ours in its environment."""
    given = {name: str(value) for name, value in environment.items()}
    python = [sys.executable, "-c", program]
    return run_alone(python, command("python"), cwd=cwd, **given).ok().stdout


def start(*words: object, cwd: Path, **environment: str) -> subprocess.Popen[str]:
    """``diet-mt`` as a user runs it, in a process group of its own, which a test may kill."""
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
    """Both outputs, once it has ended."""
    try:
        out, err = process.communicate(timeout=SECONDS)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == status, (out + err)[-4000:]
    return out + err
