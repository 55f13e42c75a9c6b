"""Runs fairseq commands in fresh processes without paying each time for importing torch and fairseq.

The server imports what is slow and forks for every command, so the child has not yet seen the plugin, its user dir or
any of fairseq's commands, and nothing that one command leaves behind reaches the next. What the interpreter would do
with an uncaught exception (call ``sys.excepthook``, exit with 1) the child does itself.

Protocol: one JSON object per line on standard input, the exit status (negative: the signal) per line on standard
output, in the same order.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from typing import Any

# What takes seconds to import. Not fairseq_cli: its modules set logging up as they are imported.
SLOW = (
    "torch",
    "numpy",
    "sacrebleu",
    "hydra.main",
    "fairseq.checkpoint_utils",
    "fairseq.criterions",
    "fairseq.data",
    "fairseq.hub_utils",
    "fairseq.models.transformer",
    "fairseq.optim.lr_scheduler",
    "fairseq.sequence_generator",
    "fairseq.tasks.translation",
    "fairseq.trainer",
)


def redirect(request: dict[str, Any]) -> None:
    """Standard streams, folder and environment of the command, for this process."""
    for number, name, flags in (
        (0, request["stdin"], os.O_RDONLY),
        (1, request["stdout"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        (2, request["stderr"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    ):
        opened = os.open(name, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    os.chdir(request["cwd"])
    os.environ.update(request["env"])


def run(request: dict[str, Any]) -> int:
    """Calls ``module:function`` with its arguments; the exit status of the process."""
    module, function = request["entry"].split(":")
    sys.argv = [request["name"], *request["argv"]]
    try:
        # Like a command started from its own folder, and unlike one that is run with -m.
        sys.path[0] = os.path.dirname(sys.executable)
        getattr(importlib.import_module(module), function)()
        status = 0
    except SystemExit as stop:
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
        status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def child(request: dict[str, Any]) -> None:
    """Never returns."""
    status = 70  # the server's own fault
    try:
        redirect(request)
        status = run(request)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def main() -> None:
    for module in SLOW:
        importlib.import_module(module)
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            child(json.loads(line))
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(status, file=answers, flush=True)


if __name__ == "__main__":
    main()
