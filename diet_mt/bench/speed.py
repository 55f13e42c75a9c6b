"""Speed of training and decoding: stock fairseq, our encodings, CTranslate2.

Each system runs in a process of its own (worker.py), stock fairseq in one without the plugin.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from ..command_line import need_known
from ..decoding.choice import VARIABLE
from ..errors import UserError
from ..files import PLUGIN
from ..models._architectures import SIZES
from ..positions import COMMAND_NAMES
from .rows import Record, environment, interleaved, need_device, quartiles, ratios
from .worker import RANDOM_DATA

STOCK = "stock"  # fairseq's transformer without the plugin
CTRANSLATE2 = "ctranslate2"
# Our models decoded by fairseq's search.
UNDER_FAIRSEQ = {f"{name}:fairseq": name for name in ("diet_rel", "diet_abs")}
# Systems that only decode -> the system whose weights they have.
WEIGHTS_OF = {CTRANSLATE2: STOCK, **UNDER_FAIRSEQ}
SYSTEMS = (STOCK, *COMMAND_NAMES, *WEIGHTS_OF)
# Arguments of the command that are fields of worker.Job.
_OF_JOB = ("threads", "vocabulary", "decode_tokens", "batches", "decode_length", "beam", "lenpen")


class Worker:
    """A process with one system; as a context it ends with the block."""

    def __init__(self, system: str, words: Sequence[str], **job: Any) -> None:
        self.system = system
        if WEIGHTS_OF.get(system, system) != STOCK:
            job["user_dir"] = str(PLUGIN)
        job |= {"words": words, "engine": CTRANSLATE2 if system == CTRANSLATE2 else "fairseq"}
        variables = {name: value for name, value in os.environ.items() if name != VARIABLE}
        if system in UNDER_FAIRSEQ:
            variables[VARIABLE] = "fairseq"
        self.errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("worker.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            encoding="utf-8",
            env=variables,
        )
        self._send({"user_dir": None, **job})

    def ask(self, what: str, kind: str) -> Record:
        """The answer to a message. Raises UserError with the last line of a process that died."""
        self._send({what: kind})
        line = self.process.stdout.readline()  # type: ignore[union-attr]
        if not line:
            status = self.process.wait()
            self.errors.seek(0)
            last = self.errors.read().strip().rpartition("\n")[2]
            raise UserError(f"{self.system}: worker ended with status {status} ({last})")
        answer: Record = json.loads(line)
        return answer

    def turn(self, kind: str) -> float:
        return float(self.ask("turn", kind)["seconds"])

    def _send(self, message: Mapping[str, Any]) -> None:
        with suppress(BrokenPipeError):  # of a dead process, which gives no answer either
            print(json.dumps(message), file=self.process.stdin, flush=True)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
        self.errors.close()


def model_words(system: str, sizes: Mapping[str, Any]) -> list[str]:
    """Options of fairseq-train for a model with shared embeddings.

    ``sizes`` of encoder and decoder: ``layers``, ``embed_dim``, ...
    """
    name = WEIGHTS_OF.get(system, system)
    words = ["--arch", "transformer" if name == STOCK else f"{name}_tiny"]
    for field, size in sizes.items():
        flag = field.replace("_", "-")
        if field != "dropout":
            words += [f"--encoder-{flag}", str(size), f"--decoder-{flag}", str(size)]
    return [*words, "--share-all-embeddings"]


def training_words(max_tokens: int, dropout: float) -> list[str]:
    """Options of fairseq-train for a training step."""
    words = ["--dropout", str(dropout), "--max-tokens", str(max_tokens)]
    words += ["--optimizer", "adam", "--adam-betas", "(0.9, 0.98)", "--lr", "0.0001"]
    return [*words, "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1"]


def measure_all(args: argparse.Namespace) -> None:
    """Prints a record for each device, size, measure and system. Raises UserError.

    ``args``: of ``diet-mt bench speed``, with a mapping for ``checkpoint`` and ``variant``.
    """
    for name, words in args.variant.items():
        if name in SYSTEMS:
            raise UserError(f"--variant {name}: a system already; give another name")
        need_known("encoding", words[:1] or [""], COMMAND_NAMES, f"--variant {name}")
    known = {*SYSTEMS, *args.variant}
    need_known("system", args.systems, known)
    need_known("size", args.size, SIZES)
    need_known("system", args.checkpoint, known - WEIGHTS_OF.keys())
    for file in args.checkpoint.values():
        if not file.is_file():
            raise UserError(f"--checkpoint {file}: no such file")
    need_device(args.device)
    torch.set_num_threads(args.threads or torch.get_num_threads())
    args.threads = torch.get_num_threads()
    systems = list(dict.fromkeys([*(args.systems or SYSTEMS), *args.variant]))
    devices = ["cpu"] if args.device != "cuda" else []
    devices += ["cuda"] if args.device != "cpu" and torch.cuda.is_available() else []
    for device in devices:
        own = [name for name in systems if name != CTRANSLATE2 or _runs_ctranslate2(device)]
        if not own:
            raise UserError("none of these systems can be measured here")
        for half in [False, True] if args.fp16 and device == "cuda" else [False]:
            facts = environment(device, half, "bench speed", args.words)
            for size in args.size:
                for record in measure(own, size, device, half, args):
                    print(json.dumps({**record, **facts}), flush=True)


def _runs_ctranslate2(device: str) -> bool:
    why = "" if device == "cpu" else "it is measured on the CPU alone"
    if find_spec("ctranslate2") is None:
        why = "it is not installed (pip install --no-deps ctranslate2)"
    if why:
        print(f"{CTRANSLATE2}: left out, {why}", file=sys.stderr)
    return not why


def measure(
    systems: Sequence[str], size: str, device: str, half: bool, args: argparse.Namespace
) -> Iterator[Record]:
    """A record for each measure and system."""

    def worker(name: str) -> Worker:
        system, *own = args.variant.get(name, [name])
        words = [os.path.abspath(args.data) if args.data else RANDOM_DATA]
        words += model_words(system, SIZES[size])
        words += training_words(args.train_tokens, args.dropout)
        words += [*(["--fp16"] if half else []), *args.options, *own]
        file = args.checkpoint.get(WEIGHTS_OF.get(name, name))
        job = {field: getattr(args, field) for field in _OF_JOB} | {"device": device}
        return Worker(name, words, checkpoint=str(file) if file else None, **job)

    for kind in args.measures:
        names = [name for name in systems if kind == "decode" or name not in WEIGHTS_OF]
        for number, group in enumerate(groups(names, kind, args.together)):
            with ExitStack() as stack:  # of new processes, whose memory is not yet fragmented
                crew = {name: stack.enter_context(worker(name)) for name in group}
                facts = {name: each.ask("prepare", kind) for name, each in crew.items()}
                assert len({fact["sentences"] for fact in facts.values()}) == 1, "unequal work"
                for name, fact in facts.items():
                    assert fact["plugin"] == (WEIGHTS_OF.get(name, name) != STOCK), name
                turns = {name: partial(each.turn, kind) for name, each in crew.items()}
                label = f"{size} {device} {kind}"
                seconds = interleaved(turns, args.rounds, args.warmup, label)
                compare = kind == "decode" and not args.decode_length
                equal = equal_outputs(crew) if compare else {}
            for name in group if number == 0 else group[1:]:
                about: Record = {"size": size, "system": name, "measure": kind}
                if kind == "decode":
                    about["decode_length"] = args.decode_length
                numbers = summary(kind, seconds[name], seconds.get(STOCK), facts[name])
                if name in WEIGHTS_OF:  # by another search: not the speed of the encoding
                    numbers.pop("positions", None)
                yield {**about, **numbers, **equal.get(name, {})}


def groups(names: list[str], kind: str, together: int) -> list[list[str]]:
    """Systems that take turns: all, or in training stock and ``together`` others."""
    others = [name for name in names if name != STOCK]
    if kind == "decode" or STOCK not in names or not 0 < together < len(others):
        return [names]
    starts = range(0, len(others), together)
    return [[STOCK, *others[start : start + together]] for start in starts]


def equal_outputs(crew: Mapping[str, Worker]) -> dict[str, Record]:
    """How many translations of a system are those of the one whose weights it has."""
    equal = {}
    for name, original in WEIGHTS_OF.items():
        if name in crew and original in crew:
            ours, theirs = (crew[who].ask("outputs", "decode")["outputs"]
                            for who in (name, original))  # fmt: skip
            same = sum(ours[number] == theirs[number] for number in theirs)
            equal[name] = {"equal": same, "compared": len(theirs), "equal_to": original}
    return equal


def summary(kind: str, own: list[float], stock: list[float] | None, facts: Record) -> Record:
    """Milliseconds of a batch, or sentences per second, and the ratio to stock of each round."""
    if kind == "decode":
        record = {"unit": "sentences/s"} | quartiles("", [facts["sentences"] / s for s in own])
        record |= ratios(stock, own) if stock else {}
    else:
        record = {"unit": "ms"} | quartiles("", [1000 * s / facts["batches"] for s in own])
        record |= ratios(own, stock) if stock else {}
    shown = ("batches", "sentences", "setting", "positions")
    record |= {name: facts[name] for name in shown if facts[name]}
    return {**record, "rounds": len(own), "seconds": [round(value, 6) for value in own]}
