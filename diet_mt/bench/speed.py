"""Speed and memory of training and decoding: stock fairseq, our encodings, CTranslate2.

Each system runs in its own process (``worker.py``), stock fairseq without the plugin.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from ..decoding.generator import VARIABLE
from ..models.architectures import SIZES
from ..positions import COMMAND_NAMES
from ..system.errors import UserError
from ..system.files import PLUGIN
from ..system.options import flag, need_file, need_known, shell_words
from .commands import Memory, Speed
from .rows import Record, environment, interleaved, need_device, quartiles, ratios
from .worker import RANDOM_DATA

Facts = dict[str, Record]
STOCK = "stock"  # fairseq's Transformer without the plugin
CTRANSLATE2 = "ctranslate2"
# Our models with fairseq's beam search -> name of the model.
UNDER_FAIRSEQ = {f"{name}:fairseq": name for name in ("diet_rel", "diet_abs")}
# Systems that decode in int8 -> system with the same weights.
INT8 = {f"{name}:int8": name for name in ("sinusoidal", "diet_rel", "diet_abs")}
INT8[f"{CTRANSLATE2}:int8"] = STOCK
# Systems that only decode -> system with the same weights.
WEIGHTS_OF = {CTRANSLATE2: STOCK, **UNDER_FAIRSEQ, **INT8}
SYSTEMS = (STOCK, *COMMAND_NAMES, *WEIGHTS_OF)
# Maximum of the first load on a GPU, with which all systems compile at the same time.
_SMALL = {"tokens": 2048, "sentences": 64}
# Arguments of the command that are passed to worker.Job.
_OF_JOB = ("vocabulary", "batches", "decode_length", "beam", "lenpen")


class Worker:
    """A worker process with one system, as a context manager."""

    def __init__(self, system: str, words: Sequence[str], **job: Any) -> None:
        self.system = system
        if WEIGHTS_OF.get(system, system) != STOCK:
            job["user_dir"] = str(PLUGIN)
        engine = CTRANSLATE2 if system.startswith(CTRANSLATE2) else "fairseq"
        job |= {"words": words, "engine": engine}
        job["compute_type"] = "int8" if system in INT8 else "float32"
        variables = {name: value for name, value in os.environ.items() if name != VARIABLE}
        if system in UNDER_FAIRSEQ:
            variables[VARIABLE] = "fairseq"
        self.errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        self.process: Any = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("worker.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            encoding="utf-8",
            env=variables,
        )
        self._send({"user_dir": None, **job})

    def ask(self, method: str, **given: Any) -> Any:
        """Result of a method of worker.System. Raises :class:`UserError` if the process ended."""
        self._send([method, given])
        line = self.process.stdout.readline()
        if not line:
            status = self.process.wait()
            self.errors.seek(0)
            last = self.errors.read().strip().rpartition("\n")[2]
            raise UserError(f"{self.system}: worker ended with status {status} ({last})")
        return json.loads(line)

    def turn(self) -> float:
        self.last: Record = self.ask("turn")
        return float(self.last["seconds"])

    def _send(self, message: object) -> None:
        with suppress(BrokenPipeError):  # ended: the missing answer raises the error
            print(json.dumps(message), file=self.process.stdin, flush=True)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
        self.errors.close()


def model_words(system: str, sizes: Mapping[str, Any]) -> list[str]:
    """Options of fairseq-train for a model with shared embeddings.

    ``sizes``: of encoder and decoder, such as ``layers`` and ``embed_dim``.
    """
    name = WEIGHTS_OF.get(system, system)
    words = ["--arch", "transformer" if name == STOCK else f"{name}_tiny"]
    for field, size in sizes.items():
        if field != "dropout":
            for side in ("encoder", "decoder"):
                words += [flag(f"{side}_{field}"), str(size)]
    if system in INT8 and name != STOCK:
        words += ["--task", "diet_translation", "--int8"]
    return [*words, "--share-all-embeddings"]


def training_words(dropout: float) -> list[str]:
    """Options of fairseq-train for a training step."""
    words = ["--dropout", str(dropout), "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)"]
    words += ["--lr", "0.0001", "--criterion", "label_smoothed_cross_entropy"]
    return [*words, "--label-smoothing", "0.1"]


def measure_all(args: Speed) -> None:
    """Prints a record for each size, measure, load and system of ``diet-mt bench speed``."""
    need_known("system", (text.partition(" ")[0] for text in args.systems), SYSTEMS)
    systems = {text: shell_words(text, "--systems") for text in args.systems or SYSTEMS}
    need_known("size", args.size, SIZES)
    files = dict(args.checkpoint)
    need_known("system", files, {*SYSTEMS, *systems} - WEIGHTS_OF.keys())
    for file in files.values():
        need_file(Path(file), "checkpoint")
    need_device(args.device)
    torch.set_num_threads(args.threads or torch.get_num_threads())
    systems = {name: words for name, words in systems.items() if _runs(name, args.device)}
    if not systems:
        raise UserError("none of these systems can be measured here")
    facts = environment(args.device, "bench speed", args.words)
    for size in args.size:
        for record in measure(systems, size, files, args):
            print(json.dumps({**record, **facts} | record), flush=True)


def _runs(system: str, device: str) -> bool:
    why = ""
    if system in (CTRANSLATE2, *INT8) and device != "cpu":
        why = "it is measured only on the CPU"
    elif system.startswith(CTRANSLATE2) and find_spec("ctranslate2") is None:
        why = "it is not installed (pip install --no-deps ctranslate2)"
    if why:
        print(f"{system}: left out, {why}", file=sys.stderr)
    return not why


def measure(
    systems: Mapping[str, Sequence[str]], size: str, files: Mapping[str, str], args: Speed
) -> Iterator[Record]:
    """Records of each measure, load and system. Raises UserError at the end if a system failed.

    ``systems``: name -> system and its own options; ``files``: name -> checkpoint.
    """
    data = os.path.abspath(args.data) if args.data else RANDOM_DATA
    label = f"{size} {args.device}"
    failed: list[str] = []

    def worker(name: str) -> Worker:
        system, *own = systems[name]
        words = [data, *model_words(system, SIZES[size]), *training_words(args.dropout), *own]
        job = {field: getattr(args, field) for field in _OF_JOB}
        job |= {"threads": torch.get_num_threads(), "device": args.device}
        return Worker(system, words, checkpoint=files.get(WEIGHTS_OF.get(name, name)), **job)

    for kind in args.measures:
        names = [name for name in systems if kind == "decode" or name not in WEIGHTS_OF]
        stocks = [name for name in names if systems[name][0] == STOCK]
        with ExitStack() as stack:  # new processes, without fragmented memory
            crew = {name: stack.enter_context(worker(name)) for name in names}
            for load, facts, seconds in turns(crew, kind, f"{label} {kind}", args):
                for name, fact in facts.items():
                    stock = name in stocks or WEIGHTS_OF.get(name) == STOCK
                    assert fact["plugin"] != stock, name
                compare = kind == "decode" and not args.decode_length
                equal = equal_outputs(crew) if compare else {}
                totals = [(sum(seconds[name]), name) for name in stocks if name in crew]
                best = min(totals)[1] if totals else ""
                for name in crew:
                    about: Record = {"size": size, "system": name, "measure": kind, "load": load}
                    usual = "int8" if name in INT8 else "fp32"
                    given = (each for each in ("fp16", "bf16") if f"--{each}" in systems[name])
                    about["precision"] = next(given, usual)
                    about |= {"over": best} if best else {}
                    about |= {"decode_length": args.decode_length} if kind == "decode" else {}
                    numbers = summary(kind, seconds[name], seconds.get(best), facts[name])
                    if name in WEIGHTS_OF:  # another search or int8: not the encoding's own speed
                        numbers.pop("positions", None)
                    yield {**about, **numbers, **equal.get(name, {})}
            failed += [name for name in names if name not in crew]
    if failed:
        raise UserError(f"{label}: no figures of {', '.join(dict.fromkeys(failed))}")


def turns(
    crew: dict[str, Worker], kind: str, label: str, args: Speed
) -> Iterator[tuple[Record, Facts, dict[str, list[float]]]]:
    """Each load, with facts and seconds per round of each system; drops failed systems."""
    work, end = loads(kind, args), time.monotonic() + (args.seconds or math.inf)
    if args.device == "cuda":  # compiles, for up to a minute, in parallel on small batches
        small = {key: min(work[0][key], _SMALL[key]) for key in work[0].keys() & _SMALL}
        prepare(crew, kind, work[0] | small, len(crew) or 1)
    for number, load in enumerate(work):
        until = time.monotonic() + (end - time.monotonic()) / (len(work) - number)
        facts = prepare(crew, kind, load)
        assert len({fact["sentences"] for fact in facts.values()}) < 2, "unequal work"
        each = {name: worker.turn for name, worker in crew.items()}
        seconds = interleaved(each, args.rounds, args.warmup, label, until)
        yield load, {name: facts[name] | worker.last for name, worker in crew.items()}, seconds


def prepare(crew: dict[str, Worker], kind: str, load: Record, at_once: int = 1) -> Facts:
    """Facts of all systems, prepared ``at_once`` in parallel; removes failed ones from ``crew``."""

    def answer(each: Worker) -> Record | UserError:
        try:
            facts: Record = each.ask("prepare", kind=kind, **load)
            return facts
        except UserError as error:
            return error

    with ThreadPoolExecutor(at_once) as pool:
        answers = dict(zip(crew, pool.map(answer, crew.values()), strict=True))
    for name, error in answers.items():
        if isinstance(error, UserError):
            print(f"{name}: left out ({error})", file=sys.stderr)
            crew.pop(name).process.kill()
    return {name: facts for name, facts in answers.items() if not isinstance(facts, UserError)}


def loads(kind: str, args: Speed) -> list[Record]:
    """The loads of a measure: arguments of worker.System.batches."""
    if kind == "decode":
        sentences = [{"sentences": number} for number in args.decode_sentences]
        return sentences or [{"tokens": number} for number in args.decode_tokens]
    shapes = [{"lengths": shapes} for shapes in args.lengths] or [{}]
    return [{"tokens": tokens, **shape} for tokens in args.train_tokens for shape in shapes]


def equal_outputs(crew: Mapping[str, Worker]) -> dict[str, Record]:
    """System -> number of translations that equal those of the system with the same weights."""
    equal = {}
    for name, original in WEIGHTS_OF.items():
        if {name, original} <= crew.keys():
            ours, theirs = (crew[each].ask("outputs") for each in (name, original))
            same = sum(ours[number] == theirs[number] for number in theirs)
            equal[name] = {"equal": same, "compared": len(theirs), "equal_to": original}
    return equal


def summary(kind: str, own: list[float], stock: list[float] | None, facts: Record) -> Record:
    """Milliseconds per batch, or sentences per second of decoding, and ratios to stock."""
    if kind == "decode":
        record = {"unit": "sentences/s"} | quartiles("", [facts["sentences"] / s for s in own])
        record |= ratios(stock, own) if stock else {}
    else:
        record = {"unit": "ms"} | quartiles("", [1000 * s / facts["batches"] for s in own])
        record |= ratios(own, stock) if stock else {}
    shown = ("batches", "sentences", "setup", "setting", "positions", "peak_bytes")
    record |= {name: facts[name] for name in shown if facts.get(name)}
    return {**record, "rounds": len(own), "seconds": [round(value, 6) for value in own]}


# Peak memory over a long sentence pair: DIET-ABS with a bias matrix and with factors in queries and
# keys, DIET-REL, and stock fairseq.
MEMORY_SIZES = {"layers": 2, "embed_dim": 256, "ffn_embed_dim": 256, "attention_heads": 4}
_WORDS = 1000  # vocabulary size, small so that attention dominates the output layer
_APPEND_FROM = "diet_mt.positions.factors:APPEND_FROM"  # size from which factors are used
# Case -> system, and constants that force a bias matrix or factors.
CASES: dict[str, tuple[str, dict[str, int]]] = {
    "diet_abs, table": ("diet_abs", {_APPEND_FROM: sys.maxsize}),
    "diet_abs, factors": ("diet_abs", {_APPEND_FROM: 1}),
    "diet_rel": ("diet_rel", {}),
    STOCK: (STOCK, {}),
}
# Maximum length for training with bias matrices: twice as many tokens need more than 20 GiB.
LONGEST_TRAINING = dict.fromkeys(CASES.keys() - {"diet_abs, factors"}, 4096)


def peak(case: str, measure: str, length: int) -> Record:
    """Peak bytes, and seconds (not a measure of speed), of one pass in a new process."""
    system, constants = CASES[case]
    words = [RANDOM_DATA, *model_words(system, MEMORY_SIZES), *training_words(dropout=0.1)]
    words += ["--max-source-positions", str(length), "--max-target-positions", str(length)]
    job = {"threads": torch.get_num_threads(), "vocabulary": _WORDS}
    with Worker(system, words, constants=constants, **job) as worker:
        record: Record = worker.ask("peak", kind=measure, tokens=length)
        return record


def measure_memory(args: Memory) -> None:
    """Prints a record for each pass, case and length of ``diet-mt bench memory``."""
    need_known("case", args.cases, CASES)
    torch.set_num_threads(args.threads or torch.get_num_threads())
    facts = {**MEMORY_SIZES, "vocabulary": _WORDS, **environment("cpu", "bench memory", args.words)}
    for measure in ("forward", "train"):
        for case in args.cases or CASES:
            for length in args.lengths:
                if measure == "train" and length > LONGEST_TRAINING.get(case, length):
                    continue
                print(f"{measure}, {case}, {length} tokens", file=sys.stderr)
                about = {"measure": measure, "case": case, "length": length}
                print(json.dumps({**about, **peak(case, measure, length), **facts}), flush=True)
