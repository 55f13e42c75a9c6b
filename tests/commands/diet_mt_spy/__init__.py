"""A user dir that is diet_mt and besides watches it, or ends the process at a chosen moment.

``DIET_SPY_REPORT``: a file for what was seen: how often each attention module was called, on which
sides sources were padded, and the largest batch.

``DIET_SPY_KILL``: ``PLACE:N``, SIGKILL at the N-th time that the process comes to PLACE. That is
``update`` (between backward pass and step of the optimizer), ``save`` (half of a checkpoint is
written) or ``copy`` (half of a checkpoint is copied).
"""

from __future__ import annotations

import atexit
import io
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

import torch
from fairseq.optim import FairseqOptimizer
from fairseq.sequence_generator import SequenceGenerator

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from diet_mt import plugin as plugin  # registers
from diet_mt.layers.encoder import DietEncoder
from diet_mt.layers.multihead import PositionalAttention


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


def watch(report: Path) -> None:
    """Writes ``report`` when the process ends."""
    built: list[PositionalAttention] = []
    called: dict[int, int] = {}
    sides: set[str] = set()
    rows: list[int] = [0]
    init, forward = PositionalAttention.__init__, PositionalAttention.forward
    encode, generate = DietEncoder.forward, SequenceGenerator.generate

    def watched_init(self: PositionalAttention, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        built.append(self)

    def watched_forward(self: PositionalAttention, *args: Any, **kwargs: Any) -> Any:
        called[id(self)] = called.get(id(self), 0) + 1
        return forward(self, *args, **kwargs)

    def watched_encode(
        self: DietEncoder, src_tokens: torch.Tensor, *args: Any, **kwargs: Any
    ) -> Any:
        padding = src_tokens.eq(self.padding_idx)
        sides.update(
            side for side, column in (("left", 0), ("right", -1)) if padding[:, column].any()
        )
        return encode(self, src_tokens, *args, **kwargs)

    def watched_generate(self: Any, models: Any, sample: Any, **kwargs: Any) -> Any:
        """Of whichever search: a batch is what it is given, however it divides that."""
        rows[0] = max(rows[0], sample["id"].numel())
        return generate(self, models, sample, **kwargs)

    def write() -> None:
        calls = [called.get(id(module), 0) for module in built]
        seen = {"calls": calls, "padding": sorted(sides), "largest_batch": rows[0]}
        report.write_text(json.dumps(seen), encoding="utf-8")

    PositionalAttention.__init__ = watched_init  # type: ignore[method-assign]
    PositionalAttention.forward = watched_forward  # type: ignore[method-assign]
    DietEncoder.forward = watched_encode
    SequenceGenerator.generate = watched_generate
    atexit.register(write)


if os.environ.get("DIET_SPY_REPORT"):
    watch(Path(os.environ["DIET_SPY_REPORT"]))
if os.environ.get("DIET_SPY_KILL"):
    place, _, number = os.environ["DIET_SPY_KILL"].partition(":")
    kill = {"update": kill_at_update, "save": kill_at_save, "copy": kill_at_copy}[place]
    kill(Countdown(int(number)))
