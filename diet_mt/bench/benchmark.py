"""Times fairseq's own Transformer, ours and CTranslate2: training, forward pass, decoding.

Each system lives in a process of its own, stock fairseq in one without the plugin; one at a time
has its turn, and another one begins each round.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ..blocks import Grid, markdown_table
from ..command_line import need_known
from ..errors import UserError
from ..models._architectures import SIZES
from .machine import Rows, grouped, machine, need_device
from .process.timing import interleaved, numbers, ratios, rounds_on_stderr
from .systems import (
    STOCK,
    SYSTEMS,
    WEIGHTS_OF,
    benchmark_job,
    environment,
    label,
    unavailable,
    variants_beside,
)
from .workers import Worker, workers

# What the table reads of a record.
KEYS = ("size", "system", "measure", "median", "command")
# Measure -> its unit, and what ours should be beside stock fairseq.
MEASURES = {
    "train": ("ms", "at most 1.00"),
    "forward": ("ms", "at most 1.00"),
    "decode": ("sentences/s", "at least 1.00"),
}
# Arguments that are fields of bench.workload.Job under the same names.
_COMMON = (
    *("threads", "vocabulary", "train_tokens", "decode_tokens", "batches", "decode_length"),
    *("beam", "lenpen"),
)


@dataclass(frozen=True)
class SpeedSettings:
    """What is measured, and with what."""

    size: Sequence[str]
    systems: Sequence[str]  # none: all
    measures: Sequence[str]
    device: str
    fp16: bool  # on the GPU, as well
    threads: int | None  # None: torch's own choice
    rounds: int  # timed turns
    warmup: int  # untimed turns before
    together: int  # systems that take turns with stock at a time; 0: all
    data: Path | None  # None: made-up sentences
    vocabulary: int
    train_tokens: int
    decode_tokens: int
    batches: int  # in a turn; 0: the whole data set
    decode_length: int  # tokens of every hypothesis; 0: the model decides
    beam: int
    lenpen: float
    dropout: float
    variant: Mapping[str, Sequence[str]]  # further systems: encoding, options of fairseq-train
    options: Sequence[str]  # further ones of fairseq-train, of all systems
    checkpoint: Mapping[str, Path]  # weights of a system


def measure_all(how: SpeedSettings, command: str) -> None:
    """Prints a record for each measure and system, of each size and device. Raises UserError."""
    how = replace(how, threads=how.threads or torch.get_num_threads())
    systems = variants_beside(how.variant)
    need_known("system", how.systems, systems)
    need_known("size", how.size, SIZES)
    need_known("system", how.checkpoint, set(systems) - set(WEIGHTS_OF))
    chosen = list(dict.fromkeys([*(how.systems or SYSTEMS), *how.variant]))
    for device, half in _places(how):
        names = _available(chosen, device)
        for size in how.size:
            for record in measure(names, size, device, half, how):
                facts = machine(device, half, command) | {"threads": how.threads}
                print(json.dumps({**record, **facts}), flush=True)


def measure(
    names: list[str], size: str, device: str, half: bool, how: SpeedSettings
) -> Iterator[dict[str, Any]]:
    """One record for each measure and system."""
    common = {name: getattr(how, name) for name in _COMMON} | {"device": device, "half": half}
    # Absolute, for the error messages of the workers as much as for their working directory.
    common["data"] = os.path.abspath(how.data) if how.data else None
    jobs = {}
    for name in names:
        file = how.checkpoint.get(WEIGHTS_OF.get(name, name))
        given = {**common, "checkpoint": str(file) if file else None}
        system, *own = how.variant.get(name, [name])
        further = [*how.options, *own]
        jobs[name] = benchmark_job(system, size, given, how.dropout, further), environment(name)
    for kind in how.measures:
        chosen = [name for name in names if kind == "decode" or name not in WEIGHTS_OF]
        for number, group in enumerate(_groups(chosen, kind, how.together)):
            # Processes of this measure alone: what another one left in memory would be in the way.
            with workers({name: jobs[name] for name in group}) as crew:
                facts = {name: worker.ask("prepare", kind) for name, worker in crew.items()}
                _check(facts)
                seconds = interleaved(
                    {name: partial(worker.turn, kind) for name, worker in crew.items()},
                    rounds=how.rounds,
                    warmup=how.warmup,
                    progress=rounds_on_stderr(f"{size} {device} {kind}", how.rounds),
                )
                equal = _compared(crew) if kind == "decode" and not how.decode_length else {}
            for name in group if number == 0 else group[1:]:
                record = _summary(kind, seconds[name], seconds.get(STOCK), facts[name])
                if name in WEIGHTS_OF:  # the encoding's own speed is that of our search
                    record.pop("positions", None)
                about: dict[str, Any] = {"size": size, "system": name, "measure": kind}
                if kind == "decode":
                    about["decode_length"] = how.decode_length
                yield {**about, **record, **equal.get(name, {})}


def _groups(names: list[str], kind: str, together: int) -> list[list[str]]:
    """The systems that take turns: all, or in training ``together`` of them and always stock."""
    others = [name for name in names if name != STOCK]
    if kind == "decode" or STOCK not in names or not 0 < together < len(others):
        return [names]
    starts = range(0, len(others), together)
    return [[STOCK, *others[start : start + together]] for start in starts]


def _check(facts: dict[str, dict[str, Any]]) -> None:
    """All have the same work, and fairseq is changed where the plugin belongs and only there."""
    assert len({fact["digest"] for fact in facts.values()}) <= 1, facts
    for name, fact in facts.items():
        assert fact["plugin"] == (WEIGHTS_OF.get(name, name) != STOCK), name


def _compared(crew: dict[str, Worker]) -> dict[str, dict[str, Any]]:
    """How many translations of each peer are those of the system whose weights it has."""
    found: dict[str, dict[str, Any]] = {}
    for name, original in WEIGHTS_OF.items():
        if name in crew and original in crew:
            ours = crew[name].ask("outputs", "decode")["outputs"]
            theirs = crew[original].ask("outputs", "decode")["outputs"]
            equal = sum(ours[number] == theirs[number] for number in theirs)
            found[name] = {"equal": equal, "compared": len(theirs), "equal_to": original}
            said = f"{equal} of {len(theirs)} translations are those of {label(original)}"
            print(f"{label(name)}: {said}", file=sys.stderr)
    return found


def _summary(
    kind: str, ours: list[float], stock: list[float] | None, facts: dict[str, Any]
) -> dict[str, Any]:
    """Numbers of one system: in the unit of ``kind``, and the ratio to stock round by round."""
    decoding = kind == "decode"
    if decoding:
        values = [facts["sentences"] / value for value in ours]
    else:
        values = [1000 * value / facts["batches"] for value in ours]
    record: dict[str, Any] = {"unit": MEASURES[kind][0], **numbers("", values)}
    if stock:
        # Of times for times, of throughputs for throughputs.
        record |= numbers("ratio_", ratios(stock, ours) if decoding else ratios(ours, stock))
    said = ("batches", "sentences", "setting", "positions")
    turn = {key: facts[key] for key in said if facts[key]}
    return {**record, **turn, "rounds": len(ours), "seconds": [round(value, 6) for value in ours]}


def _places(how: SpeedSettings) -> list[tuple[str, bool]]:
    """Devices, each with whether it computes in half precision."""
    devices = ["cpu", "cuda"] if how.device == "auto" else [how.device]
    need_device(how.device)
    if not torch.cuda.is_available():
        devices = ["cpu"]
    places = [(device, False) for device in devices]
    return places + ([("cuda", True)] if how.fp16 and "cuda" in devices else [])


def _available(names: Sequence[str], device: str) -> list[str]:
    """Those of ``names`` that run here; the others are named on stderr.

    Raises UserError if none is left.
    """
    found = []
    for name in names:
        why = unavailable(name, device)
        if why is None:
            found.append(name)
        else:
            print(f"{name}: left out, {why}", file=sys.stderr)
    if not found:
        raise UserError("none of these systems can be measured here")
    return found


def table(records: list[dict[str, Any]]) -> str:
    """Markdown: one table for each device, precision and size."""
    out = []
    for (title, circumstances), rows in grouped(records, "system", _where).items():
        kinds = [kind for kind in MEASURES if any(kind in row for row in rows.values())]
        turns = ", ".join(f"{kind} {_turn(kind, rows)}" for kind in kinds)
        out += [f"**{title}; sentences in a turn: {turns}**", ""]
        heads = ["system"]
        for kind in kinds:
            heads += [f"{kind}, {MEASURES[kind][0]}", f"to {STOCK}"]
        lines = [
            [label(name), *(cell for kind in kinds for cell in _cells(row.get(kind)))]
            for name, row in rows.items()
        ]
        out.append(markdown_table(Grid(heads, lines)))
        wanted = ", ".join(f"{kind} {MEASURES[kind][1]}" for kind in kinds)
        out += ["", f"Median (quartiles). To {STOCK}: median of the rounds' ratios; {wanted}."]
        out += ["", *_remarks(rows)]
        out += [circumstances, ""]
    return "\n".join(out)


def _turn(kind: str, rows: Rows) -> str:
    return f"{next(row[kind]['sentences'] for row in rows.values() if kind in row):,}"


def _where(record: dict[str, Any]) -> tuple[str, str]:
    title = f"{record['size']}, {record['machine']}, {record['precision']}"
    return title, f"rounds: {record['rounds']}"


def _remarks(rows: Rows) -> list[str]:
    """A list of what systems chose for themselves and how many of their outputs are another's."""
    found = []
    for name, row in rows.items():
        for record in row.values():
            said = [record["setting"]] if record.get("setting") else []
            if "equal" in record:
                equal = f"{record['equal']:,} of {record['compared']:,} translations are those of"
                said.append(f"{equal} {label(record['equal_to'])}")
            if said:
                found.append(f"- {label(name)}: {'; '.join(said)}.")
    return [*found, ""] if found else []


def _cells(record: dict[str, Any] | None) -> list[str]:
    """The value and the ratio, each with its quartiles."""
    if record is None:
        return ["", ""]
    digits = 1 if record["median"] >= 10 else 3

    def show(prefix: str, places: int) -> str:
        if f"{prefix}median" not in record:
            return ""
        middle, low, high = (record[f"{prefix}{key}"] for key in ("median", "low", "high"))
        return f"{middle:.{places}f} ({low:.{places}f}-{high:.{places}f})"

    return [show("", digits), show("ratio_", 2)]
