"""The worker's side of the pipe: it gets a job, and then does one turn for each line it is sent.

Every message is one line of JSON. The first line on stdin is the :class:`~.workload.Job`. Then

    {"prepare": KIND}    builds what KIND needs and drops what came before  -> what is to be done
    {"turn": KIND}       does it once                                       -> {"seconds": ...}
    {"outputs": KIND}    does it once more                                  -> {"outputs": ...}
    {"peak": KIND}       one sentence pair of ``Job.length`` tokens         -> see ``_peak``

Between two lines the worker waits in ``read`` and takes no processor time. What goes wrong ends it
with a traceback on stderr.
"""

from __future__ import annotations

import gc
import hashlib
import json
import logging
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch

from .timing import clocked
from .workload import Case, Forward, Job, TrainingStep, Workload

_WARM_TOKENS = 8


def main() -> None:
    """Answers until stdin ends."""
    # fairseq and its extensions may print: answers get a copy of stdout, all else goes to stderr.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for name in ("fairseq", "hydra"):
        logging.getLogger(name).setLevel(logging.WARNING)
    warnings.filterwarnings("ignore")
    job = Job(**json.loads(sys.stdin.readline()))
    torch.set_num_threads(job.threads)
    turns = Turns(job)
    for line in iter(sys.stdin.readline, ""):
        ((what, kind),) = json.loads(line).items()
        print(json.dumps(turns.answer(what, kind)), file=answers, flush=True)


class Turns:
    """One system, and of its cases the one that is at work: models of several would not fit."""

    def __init__(self, job: Job) -> None:
        self.work = Workload(job)
        self.settle = torch.cuda.synchronize if job.device == "cuda" else lambda: None
        self.case: Case | None = None

    def answer(self, what: str, kind: str) -> dict[str, Any]:
        """What one line of the parent asks for."""
        if what == "peak":
            return _peak(self.work, kind)
        if what == "prepare":
            self.case = None
            gc.collect()
            self.case = self.work.case(kind)
            return self._facts(self.case)
        assert self.case is not None
        if what == "outputs":
            return {"outputs": self.case.outputs()}
        assert what == "turn"
        return {"seconds": clocked(self.case, self.settle)()}

    def _facts(self, case: Case) -> dict[str, Any]:
        """What is in a turn; equal work has an equal digest."""
        digest = hashlib.sha256()
        for batch in case.data:
            digest.update(batch["net_input"]["src_tokens"].cpu().numpy().tobytes())
        return {
            "batches": len(case.data),
            "sentences": case.sentences,
            "digest": digest.hexdigest()[:16],
            "setting": case.setting,
            # The encoding with its options, as checkpoints and results have it; none of stock.
            "positions": getattr(case.model, "signature", ""),
            # Whether fairseq is as the plugin changes it.
            "plugin": "diet_mt" in sys.modules,
        }


def _memory(field: str) -> int:
    """Of this process in bytes (Linux: /proc): ``VmRSS`` now, ``VmHWM`` at its peak."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.split("\n") if line.startswith(field + ":"))
    return int(line.split()[1]) * 1024


def _peak(work: Workload, kind: str) -> dict[str, Any]:
    """Runs ``train`` or ``forward`` over one pair: its peak beyond what was there, and its time."""
    case = (
        TrainingStep(work.cfg, work.task, work.model(), [])
        if kind == "train"
        else Forward(work.task, work.model(), [])
    )
    pair = work.pair(work.job.length)
    # What stays for good: first calls of each operation, the optimizer's moments.
    case.run(work.pair(_WARM_TOKENS))
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak so far is forgotten
    before, start = _memory("VmRSS"), time.perf_counter()
    case.run(pair)
    seconds = time.perf_counter() - start
    return {"peak_bytes": _memory("VmHWM") - before, "seconds": round(seconds, 3)}
