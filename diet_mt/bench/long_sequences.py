"""Peak memory of a translation model over a long sentence pair: a table of positions, or factors.

Each case and length runs in a process of its own, whose peak says what the pass needed beyond the
model and the optimizer's state. Linux only (/proc).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import torch

from ..blocks import Grid, markdown_table
from ..command_line import need_known
from ..drawing import pyplot
from .machine import machine, taken
from .systems import STOCK, environment, job, model_words, training_words
from .workers import workers

MEASURES = ("forward", "train")
SIZES = {"layers": 2, "embed_dim": 256, "ffn_embed_dim": 256, "attention_heads": 4}
# So few words that the output layer, the same for all, does not hide what attention takes.
VOCABULARY = 1000
# Queries and keys from which on factors are appended, by the way that this forces.
_APPEND_FROM = "diet_mt.positions.factors:APPEND_FROM"
_PATHS = {"table": sys.maxsize, "factors": 1}
# Case -> its system and way.
CASES = {
    "diet_abs, table": ("diet_abs", "table"),
    "diet_abs, factors": ("diet_abs", "factors"),
    "diet_rel": ("diet_rel", ""),
    STOCK: (STOCK, ""),
}
# In training the cases that keep tables of scores go no further: twice as many tokens take more
# than 20 GiB.
_LONGEST = dict.fromkeys(("diet_abs, table", "diet_rel", STOCK), 4096)
# What table and picture read of a record.
KEYS = ("measure", "case", "length", "peak_bytes", "command", *SIZES)


def in_own_process(case: str, measure: str, length: int) -> dict[str, Any]:
    """``peak_bytes`` of one pass, and its ``seconds``: no measure of speed, other work may go on
    beside it.

    Raises UserError with the last line of its process where that fails.
    """
    system, path = CASES[case]
    words = [*model_words(system, SIZES), *training_words(length, 0.1, False)]
    words += ["--max-source-positions", str(length), "--max-target-positions", str(length)]
    common = {
        "constants": {_APPEND_FROM: _PATHS[path]} if path else {},
        "threads": torch.get_num_threads(),
        "vocabulary": VOCABULARY,
        "length": length,
    }
    jobs = {case: (job(system, common, words), environment(system))}
    with workers(jobs) as crew:
        return crew[case].ask("peak", measure)


def table(records: list[dict[str, Any]]) -> str:
    """Markdown: peak memory by length, and by how much it grows when the length doubles."""
    first = records[0]
    lengths = sorted({record["length"] for record in records})
    rows = []
    for measure in MEASURES:
        for case in CASES:
            row = _peaks(records, measure, case)
            cells = [f"{row[n]:,.0f} MiB" if n in row else "" for n in lengths]
            for place, n in enumerate(lengths):
                if n in row and n // 2 in row:
                    cells[place] += f" (x {row[n] / row[n // 2]:.1f})"
            if row:
                rows.append([measure, case, *cells])
    heads = ["pass", "model", *(f"n = {n}" for n in lengths)]
    out = [
        markdown_table(Grid(heads, rows, [False, False, *[True] * len(lengths)])),
        "",
        "Peak memory of one pass beyond the model and the optimizer's state; in parentheses, over "
        "half the length.",
        "",
        f"Encoder and decoder of {first['layers']} layers each, width {first['embed_dim']}, "
        f"{first['attention_heads']} heads, {first['vocabulary']:,} words, one pair of n source "
        f"and n target tokens; {taken(first)}",
        "",
    ]
    return "\n".join(out)


def _peaks(records: list[dict[str, Any]], measure: str, case: str) -> dict[int, float]:
    """Length -> MiB."""
    own = [r for r in records if (r["measure"], r["case"]) == (measure, case)]
    return {r["length"]: r["peak_bytes"] / 2**20 for r in own}


def plot(records: list[dict[str, Any]]) -> Any:
    """A picture of all cases over the length, double logarithmic: slope 2 is quadratic, slope 1
    linear.
    """
    plt = pyplot()
    lengths = sorted({record["length"] for record in records})
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
    for panel, measure in zip(panels, MEASURES, strict=True):
        for case, marker in zip(CASES, "os^x", strict=True):
            row = sorted(_peaks(records, measure, case).items())
            if row:
                panel.loglog(*zip(*row, strict=True), marker=marker, label=case, base=2)
        panel.set_title("training step" if measure == "train" else "forward pass")
        panel.set_xlabel("tokens on either side")
        panel.set_xticks(lengths, [f"{n:,}" for n in lengths])
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("peak memory, MiB")
    panels[0].yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    panels[0].legend()
    figure.suptitle("A translation model: an n x n table, or factors in queries and keys")
    return figure


def measure_all(cases: Sequence[str], lengths: Sequence[int], threads: int, command: str) -> None:
    """Prints the record of each pass; no cases: all. ``threads``: 0 for torch's own choice."""
    need_known("case", cases, CASES)
    if threads:
        torch.set_num_threads(threads)
    facts = {**SIZES, "vocabulary": VOCABULARY, **machine("cpu", False, command)}
    for kind in MEASURES:
        for case in cases or CASES:
            for length in lengths:
                if kind == "train" and length > _LONGEST.get(case, length):
                    continue
                print(f"{kind}, {case}, {length} tokens", file=sys.stderr)
                found = in_own_process(case, kind, length)
                about = {"measure": kind, "case": case, "length": length}
                print(json.dumps({**about, **found, **facts}), flush=True)
