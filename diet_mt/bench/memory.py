"""Peak memory of a translation model over a long sentence pair.

DIET-ABS with a table of biases and with factors in queries and keys, DIET-REL and stock fairseq;
each case and length in a process of its own. Linux only (/proc).
"""

from __future__ import annotations

import json
import sys

import torch

from ..command_line import need_known
from .requests import Memory
from .rows import Record, environment
from .speed import STOCK, Worker, model_words, training_words
from .worker import RANDOM_DATA

SIZES = {"layers": 2, "embed_dim": 256, "ffn_embed_dim": 256, "attention_heads": 4}
VOCABULARY = 1000  # small, or the output layer would hide the attention
_APPEND_FROM = "diet_mt.positions.factors:APPEND_FROM"  # sizes from which factors are used
# Case -> its system, and constants that force table or factors.
CASES: dict[str, tuple[str, dict[str, int]]] = {
    "diet_abs, table": ("diet_abs", {_APPEND_FROM: sys.maxsize}),
    "diet_abs, factors": ("diet_abs", {_APPEND_FROM: 1}),
    "diet_rel": ("diet_rel", {}),
    STOCK: (STOCK, {}),
}
# Training with tables of logits: twice as many tokens need more than 20 GiB.
LONGEST_TRAINING = dict.fromkeys(CASES.keys() - {"diet_abs, factors"}, 4096)


def peak(case: str, measure: str, length: int) -> Record:
    """Bytes and seconds of one pass; the seconds are no measure of speed."""
    system, constants = CASES[case]
    words = [RANDOM_DATA, *model_words(system, SIZES), *training_words(dropout=0.1)]
    words += ["--max-source-positions", str(length), "--max-target-positions", str(length)]
    job = {"threads": torch.get_num_threads(), "vocabulary": VOCABULARY}
    with Worker(system, words, constants=constants, **job) as worker:
        return worker.ask("peak", measure, tokens=length)


def measure_all(args: Memory) -> None:
    """Prints a record for each pass, case and length. ``args``: of ``diet-mt bench memory``."""
    need_known("case", args.cases, CASES)
    torch.set_num_threads(args.threads or torch.get_num_threads())
    facts = {**SIZES, "vocabulary": VOCABULARY}
    facts |= environment("cpu", "bench memory", args.words)
    for measure in ("forward", "train"):
        for case in args.cases or CASES:
            for length in args.lengths:
                if measure == "train" and length > LONGEST_TRAINING.get(case, length):
                    continue
                print(f"{measure}, {case}, {length} tokens", file=sys.stderr)
                about = {"measure": measure, "case": case, "length": length}
                print(json.dumps({**about, **peak(case, measure, length), **facts}), flush=True)
