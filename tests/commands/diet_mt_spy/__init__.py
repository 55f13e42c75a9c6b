"""A user dir that is diet_mt, and ends the process at a chosen moment.

``DIET_SPY_KILL``: ``PLACE:N``, SIGKILL at the N-th time that the process comes to PLACE. That is
``update`` (between backward pass and step of the optimizer), ``save`` (half of a checkpoint is
written) or ``copy`` (half of a checkpoint is copied).
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

import torch
from fairseq.optim import FairseqOptimizer

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from diet_mt import plugin as plugin  # registers


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise SystemExit("a killed process goes on")


class Countdown:
    """True at the N-th call."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __call__(self) -> bool:
        self.left -= 1
        return self.left == 0


def kill_at_update(now: Countdown) -> None:
    step = FairseqOptimizer.step

    def watched(*args: Any, **kwargs: Any) -> Any:
        if now():
            die()
        return step(*args, **kwargs)

    FairseqOptimizer.step = watched


def kill_at_save(now: Countdown) -> None:
    save = torch.save

    def watched(value: Any, file: Any, *args: Any, **kwargs: Any) -> None:
        if not now():
            return save(value, file, *args, **kwargs)
        whole = io.BytesIO()
        save(value, whole, *args, **kwargs)
        file.write(whole.getvalue()[: whole.tell() // 2])
        file.flush()
        die()

    setattr(torch, "save", watched)  # noqa: B010


def kill_at_copy(now: Countdown) -> None:
    copyfile = shutil.copyfile

    def watched(source: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        if not now():
            return copyfile(source, target, *args, **kwargs)
        content = Path(source).read_bytes()
        with open(target, "wb") as file:
            file.write(content[: len(content) // 2])
        die()

    setattr(shutil, "copyfile", watched)  # noqa: B010


if os.environ.get("DIET_SPY_KILL"):
    place, _, number = os.environ["DIET_SPY_KILL"].partition(":")
    kill = {"update": kill_at_update, "save": kill_at_save, "copy": kill_at_copy}[place]
    kill(Countdown(int(number)))
