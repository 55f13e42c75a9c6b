"""Runs commands in forks, without importing torch and fairseq for each.

The server imports what is slow and forks for every command, which leaves nothing to the next one. A
command with ``branch``, a module and a user dir, is forked by a branch of the server that has
imported both, in the order of a new process; any other has seen neither the plugin nor fairseq's
commands. An uncaught exception is handled as by the interpreter: ``sys.excepthook``, status 1.
``test_translation.py`` compares with a command as pip installs it.

Modules given as arguments are imported, too. Protocol: a JSON list of commands per line on standard
input, which run side by side; the JSON list of their exit statuses (negative: the signal) per line
on standard output.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import logging
import os
import runpy
import signal
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable
from typing import Any

# What takes seconds to import. Not fairseq_cli: its modules set logging up when they are imported.
SLOW = (
    *("torch", "torch._dynamo", "numpy", "sacrebleu", "hydra.main"),
    *("fairseq.checkpoint_utils", "fairseq.criterions", "fairseq.data", "fairseq.hub_utils"),
    *("fairseq.models.transformer", "fairseq.optim.lr_scheduler", "fairseq.sequence_generator"),
    *("fairseq.tasks.translation", "fairseq.trainer", "sentencepiece", "tokenizers"),
    *("fairseq.model_parallel.megatron_trainer", "fairseq.quantization_utils"),
)


def enter(command: dict[str, Any]) -> None:
    """Standard streams, folder, environment and time limit of the command, for this process."""
    write = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for number, name, flags in (
        (0, command["stdin"], os.O_RDONLY),
        (1, command["stdout"], write),
        (2, command["stderr"], write),
    ):
        opened = os.open(name, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    os.chdir(command["cwd"])
    os.environ.update(command["env"])
    signal.alarm(command["seconds"])


def call(command: dict[str, Any]) -> int:
    """Runs ``module:function`` or ``script.py`` as the interpreter would; the status."""
    sys.argv = [command["name"], *command["argv"]]
    module, _, function = command["entry"].partition(":")
    if function:
        return status_of(lambda: getattr(importlib.import_module(module), function)())
    return status_of(lambda: runpy.run_path(command["entry"], run_name="__main__"))


def status_of(function: Callable[[], object]) -> int:
    """The exit status of an interpreter that calls the function."""
    try:
        function()
        return 0
    except SystemExit as stop:
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1


def start(command: dict[str, Any]) -> int:
    """The process id of the command."""
    if pid := os.fork():
        return pid
    status = 70  # the server's own fault
    try:
        enter(command)
        status = call(command)
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def warm_up() -> None:
    """Fills the caches of hydra and its parser, which takes each process a third of a second."""
    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    words = ["data", "--arch", "transformer"]
    sys.argv[1:] = []
    args = options.parse_args_and_arch(options.get_training_parser(), words)
    convert_namespace_to_omegaconf(args)


def statuses_of(line: str) -> str:
    """Runs the commands of a line; a line of their exit statuses."""
    pids = [start(command) for command in json.loads(line)]
    return json.dumps([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids])


class Branch:
    """A fork of the server that imports a command's module and its user dir, and then forks."""

    def __init__(self, module: str, user_dir: str) -> None:
        (read, requests), (answers, write) = os.pipe(), os.pipe()
        if os.fork() == 0:
            os.close(requests)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            importlib.import_module(module)
            from fairseq.utils import import_user_module

            import_user_module(Namespace(user_dir=user_dir))
            sys.stdout.flush()
            gc.freeze()
            for line in open(read, encoding="utf-8"):  # noqa: SIM115
                os.write(write, f"{statuses_of(line)}\n".encode())
            os._exit(0)
        os.close(read)
        os.close(write)
        self._requests, self._answers = requests, open(answers, encoding="utf-8")  # noqa: SIM115

    def __call__(self, line: str) -> str:
        """As :func:`statuses_of`."""
        os.write(self._requests, line.encode())
        return self._answers.readline().strip()


def main() -> None:
    # The folder of the command, as for any script: neither the project nor this file's folder.
    sys.path[0] = os.path.dirname(sys.executable)
    for module in (*SLOW, *sys.argv[1:]):
        importlib.import_module(module)
    warm_up()
    logging.root.handlers.clear()  # fairseq's own imports left one
    gc.freeze()  # no child needs to look through what was imported
    branches: dict[tuple[str, str], Branch] = {}
    for line in sys.stdin:
        module, user_dir = json.loads(line)[0]["branch"]
        if user_dir and (module, user_dir) not in branches:
            branches[module, user_dir] = Branch(module, user_dir)
        run = branches[module, user_dir] if user_dir else statuses_of
        print(run(line), flush=True)
    os._exit(0)  # taking torch down takes seconds


if __name__ == "__main__":
    main()
