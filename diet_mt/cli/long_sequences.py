"""Peak memory of an encoder with DIET-ABS over long sentences: tables, or factors in the keys.

    python -m diet_mt.cli.long_sequences > cpu.jsonl
    python -m diet_mt.cli.long_sequences --plot long_sequences.png cpu.jsonl
    python -m diet_mt.cli.long_sequences --table cpu.jsonl           Markdown on stdout

Each length and path runs in a process of its own, whose peak says what the pass needed beyond the
model itself. Two layers, width 256, 4 heads, one sentence. Linux only (/proc). JSON lines on
stdout, progress on stderr.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

from ..data.corpus import run
from ..errors import UserError
from ..positions import factors
from .drawing import pyplot, save
from .encoders import make_encoder
from .machine import machine, positive, read_records
from .trained import portable

PATHS = ("table", "factors")
MEASURES = ("forward", "train")
SIZES = {"layers": 2, "embed_dim": 256, "ffn_embed_dim": 256, "attention_heads": 4}
# What table and picture read of a record.
KEYS = ("measure", "path", "length", "peak_bytes", "encoding", "command", *SIZES)
LENGTHS = (1024, 2048, 4096, 8192)


def memory(field: str) -> int:
    """Of this process in bytes: ``VmRSS`` now, ``VmHWM`` at its peak."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.split("\n") if line.startswith(field + ":"))
    return int(line.split()[1]) * 1024


def one(encoding: str, path: str, measure: str, length: int) -> dict[str, Any]:
    """Runs one pass in this process: its peak beyond what stood there before, and its time."""
    factors.APPEND_FROM = 1 if path == "factors" else sys.maxsize
    encoder = make_encoder(encoding, SIZES, positions=length, vocabulary=4, dropout=0.1)
    tokens = torch.randint(3, 4, (1, length))
    encoder(tokens[:, :8])  # what the first call of each operation allocates for good
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak so far is forgotten
    before, start = memory("VmRSS"), time.perf_counter()
    if measure == "train":
        encoder(tokens)["encoder_out"][0].sum().backward()
    else:
        with torch.no_grad():
            encoder.eval()(tokens)
    seconds = time.perf_counter() - start
    return {"peak_bytes": memory("VmHWM") - before, "seconds": round(seconds, 3)}


def in_own_process(*words: str) -> dict[str, Any]:
    """``one`` in a fresh process. Raises UserError with its last line where it fails."""
    command = [sys.executable, "-m", "diet_mt.cli.long_sequences", "--one", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().split("\n") or [""])[-1]
        raise UserError(f"{' '.join(words)}: ended with {done.returncode} ({last})")
    result: dict[str, Any] = json.loads(done.stdout.strip().split("\n")[-1])
    return result


def table(records: list[dict[str, Any]]) -> str:
    """Markdown: peak memory by length, and by how much it grows when the length doubles."""
    first = records[0]
    out = ["| pass | path | " + " | ".join(f"n = {n}" for n in _lengths(records)) + " |"]
    out += ["| --- | --- |" + " ---: |" * len(_lengths(records))]
    for measure in MEASURES:
        for path in PATHS:
            row = {r["length"]: r for r in records if (r["measure"], r["path"]) == (measure, path)}
            cells = []
            for length in _lengths(records):
                here, half = row.get(length), row.get(length // 2)
                cell = f"{here['peak_bytes'] / 2**20:,.0f} MiB" if here else ""
                if here and half:
                    cell += f" (x {here['peak_bytes'] / half['peak_bytes']:.1f})"
                cells.append(cell)
            out.append(f"| {measure} | {path} | " + " | ".join(cells) + " |")
    out += [
        "",
        "Peak memory of one pass beyond the model; in parentheses, over half the length.",
        "",
    ]
    out += [
        f"{first['encoding']}, {first['layers']} layers, width {first['embed_dim']}, "
        f"{first['attention_heads']} heads, one sentence; {first['machine']}; "
        f"torch {first['torch']}; revision {first['revision'] or 'unknown'}; {first['date']}; "
        f"`{first['command']}`",
        "",
    ]
    return "\n".join(out)


def _lengths(records: list[dict[str, Any]]) -> list[int]:
    return sorted({record["length"] for record in records})


def plot(records: list[dict[str, Any]], file: Path) -> None:
    """Both paths over the length, double logarithmic: slope 2 is quadratic, slope 1 linear."""
    plt = pyplot()
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
    for panel, measure in zip(panels, MEASURES, strict=True):
        for path, marker in zip(PATHS, "os", strict=True):
            row = sorted(
                (r["length"], r["peak_bytes"] / 2**20)
                for r in records
                if (r["measure"], r["path"]) == (measure, path)
            )
            lengths, peaks = zip(*row, strict=True)
            panel.loglog(lengths, peaks, marker=marker, label=path, base=2)
        panel.set_title("training step" if measure == "train" else "inference")
        panel.set_xlabel("tokens in the sentence")
        panel.set_xticks(_lengths(records), [f"{n:,}" for n in _lengths(records)])
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("peak memory, MiB")
    panels[0].yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    panels[0].legend()
    figure.suptitle(f"{records[0]['encoding']}: an n x n table, or factors in queries and keys")
    save(figure, file)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="diet_mt.cli.long_sequences",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--table", type=Path, help="measure nothing; this file as Markdown on stdout")
    add("--plot", type=Path, nargs=2, metavar=("PNG", "JSONL"), help="measure nothing; a picture")
    add("--encoding", default="diet-abs", choices=("diet-abs", "tupe-abs"), help="default diet-abs")
    add("--lengths", type=positive, nargs="+", default=list(LENGTHS), help=f"default {LENGTHS}")
    add("--one", nargs=4, metavar=("ENCODING", "PATH", "PASS", "LENGTH"), help=argparse.SUPPRESS)
    return parser


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    args = _parser().parse_args(words)

    def body() -> None:
        if args.one:
            encoding, path, kind, length = args.one
            print(json.dumps(one(encoding, path, kind, int(length))))
            return
        if args.table:
            print(table(read_records(args.table, KEYS)), end="")
            return
        if args.plot:
            plot(read_records(args.plot[1], KEYS), args.plot[0])
            return
        command = portable(shlex.join(["python", "-m", "diet_mt.cli.long_sequences", *words]))
        facts = machine("cpu", False, command)
        shape = {**SIZES, "encoding": args.encoding}
        for kind in MEASURES:
            for path in PATHS:
                for length in args.lengths:
                    print(f"{kind}, {path}, {length} tokens", file=sys.stderr)
                    found = in_own_process(args.encoding, path, kind, str(length))
                    case = {"measure": kind, "path": path, "length": length}
                    print(json.dumps({**case, **found, **shape, **facts}), flush=True)

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
