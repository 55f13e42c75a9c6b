"""What each encoding costs an encoder, beside one with learned positions at the input.

    diet-mt bench encoder --shapes small base > results/encoder_cost/cpu.jsonl
    diet-mt bench encoder --table results/encoder_cost/cpu.jsonl        Markdown

The measure of Chen et al. 2021, table 1: training step and inference forward pass of BERT_SMALL and
BERT_BASE over 128 tokens. Each encoding takes turns with the baseline, and ratios are taken within
a turn of both; the baseline's own row is that of a second copy of it, and says how far measurements
of equal things lie apart. A training step is masked language modelling as BERT does it: 15 % of the
tokens go through the output layer (30,000 WordPieces, tied), dropout 0.1 also on attention weights,
Adam.
JSON lines on stdout, progress on stderr.
"""

from __future__ import annotations

import argparse
import json
import logging
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..command_line import Parser, run
from ..evaluation.checkpoint import portable
from ..layers.encoder import DietEncoder
from ..positions import NAMES
from .encoders import make_encoder
from .machine import machine, need_device, positive, read_records, take_turns
from .process.timing import numbers, ratio, spread

BASELINE = "learned"
MEASURES = ("train", "forward")
# Layers, width, feed-forward, heads (Turc et al. 2019; Devlin et al. 2018), and the batch that
# keeps a step of either near a second on two cores.
SHAPES = {"small": (4, 512, 2048, 8), "base": (12, 768, 3072, 12)}
BATCHES = {"small": 8, "base": 2}
# What the table reads of a record.
KEYS = ("shape", "encoding", "measure", "ms_median", "ratio_median", "command")
POSITIONS, VOCABULARY, MASKED = 512, 30_000, 0.15

# Chen et al. 2021, table 1, in percent, TPU v2: (train, forward) by shape.
PAPER = {
    "shaw": {"base": (13, 33), "small": (24, 65)},
    "tupe-rel": {"base": (1, 19), "small": (4, 27)},
    "diet-abs": {"base": (0, 0), "small": (0, 1)},
    "diet-rel": {"base": (0, 0), "small": (0, 0)},
}


def make_bert(encoding: str, shape: str) -> DietEncoder:
    """The encoder of BERT in one of ``SHAPES``."""
    layers, width, inner, heads = SHAPES[shape]
    return make_encoder(
        encoding,
        {"layers": layers, "embed_dim": width, "ffn_embed_dim": inner, "attention_heads": heads},
        positions=POSITIONS,
        vocabulary=VOCABULARY,
        dropout=0.1,
        attention_dropout=0.1,
        activation_fn="gelu",
        layernorm_embedding=True,
    )


def make_cases(
    encoder: DietEncoder, tokens: Tensor, masked: Tensor
) -> dict[str, Callable[[], None]]:
    """``train`` and ``forward`` over ``tokens`` (B, S); predicted are those ``masked`` (B, S)."""
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-4)
    words = encoder.embed_tokens.weight

    def train() -> None:
        encoder.train()
        states = encoder(tokens)["encoder_out"][0].transpose(0, 1)[masked]  # (masked, E)
        logits = F.linear(states[:, : words.size(1)], words)
        F.cross_entropy(logits, tokens[masked]).backward()
        optimizer.step()
        optimizer.zero_grad()

    @torch.no_grad()
    def forward() -> None:
        encoder.eval()
        encoder(tokens)

    return {"train": train, "forward": forward}


def measure(shape: str, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One record for each measure and encoding."""
    generator = torch.Generator().manual_seed(1)
    size = args.batch or BATCHES[shape], args.tokens
    tokens = torch.randint(4, VOCABULARY, size, generator=generator).to(args.device)
    masked = torch.rand(size, generator=generator).lt(MASKED).to(args.device)
    names = [BASELINE, *(name for name in args.encodings if name != BASELINE)]
    for name in names:
        # Both in memory and in turn, nothing else beside them: the closest comparison there is.
        pair = {
            who: make_cases(make_bert(encoding, shape).to(args.device), tokens, masked)
            for who, encoding in (("baseline", BASELINE), ("own", name))
        }
        for kind in args.measures:
            kept = {who: cases[kind] for who, cases in pair.items()}
            label = f"{shape} {args.device} {name} {kind}"
            seconds = take_turns(kept, label, args.device, args.rounds, args.warmup)
            yield {
                "shape": shape,
                "encoding": name,
                "measure": kind,
                "batch": size[0],
                "tokens": size[1],
                "rounds": args.rounds,
                **numbers("ms_", spread([1000 * value for value in seconds["own"]])),
                **numbers("ratio_", ratio(seconds["own"], seconds["baseline"])),
            }


def table(records: list[dict[str, Any]]) -> str:
    """Markdown: a table for each shape and machine, in percent over the baseline."""
    groups: dict[tuple[str, ...], dict[str, dict[str, dict[str, Any]]]] = {}
    for record in records:
        where = (
            f"BERT_{record['shape'].upper()}",
            f"{record['batch']} x {record['tokens']} tokens; {record['machine']}, "
            f"{record['precision']}, threads: {record['threads']}; torch {record['torch']}; "
            f"revision {record['revision'] or 'unknown'}; {record['date']}; "
            f"rounds: {record['rounds']}",
            record["command"],
        )
        rows = groups.setdefault(where, {})
        rows.setdefault(record["encoding"], {})[record["measure"]] = record
    out = []
    for (shape, circumstances, command), rows in groups.items():
        out += [f"**{shape}**", ""]
        out += [
            "| encoding | train, ms | over learned | paper | forward, ms | over learned | paper |"
        ]
        out += ["| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
        for name, row in rows.items():
            cells = [name]
            for number, kind in enumerate(MEASURES):
                paper = PAPER.get(name, {}).get(shape[5:].lower())
                cells += [*_cells(row.get(kind)), f"{paper[number]:+d} %" if paper else ""]
            out.append("| " + " | ".join(cells) + " |")
        out += ["", "Median (quartiles); over learned: median of the rounds' ratios.", ""]
        out += [f"The row `{BASELINE}` compares two copies of the same encoder: the error.", ""]
        out += [f"{circumstances}; `{command}`", ""]
    return "\n".join(out)


def _cells(record: dict[str, Any] | None) -> list[str]:
    if record is None:
        return ["", ""]
    low, middle, high = (100 * record[f"ratio_{key}"] - 100 for key in ("low", "median", "high"))
    return [f"{record['ms_median']:.0f}", f"{middle:+.1f} % ({low:+.1f} to {high:+.1f})"]


def _parser() -> Parser:
    parser = Parser("bench encoder", __doc__)
    add = parser.add_argument
    add("--table", type=Path, nargs="+", help="time nothing; these files as Markdown on stdout")
    add("--shapes", nargs="+", default=["small"], choices=sorted(SHAPES), help="default small")
    add("--encodings", nargs="+", default=list(NAMES), choices=list(NAMES), help="default all")
    add("--measures", nargs="+", default=list(MEASURES), choices=MEASURES, help="default both")
    add("--device", default="cpu", choices=("cpu", "cuda"), help="default cpu")
    add("--tokens", type=positive, default=128, help="in a sentence (default 128)")
    add("--batch", type=positive, help=f"sentences (default {BATCHES})")
    add("--rounds", type=positive, default=21, help="timed turns of each pair (default 21)")
    add("--warmup", type=positive, default=2, help="untimed turns before (default 2)")
    return parser


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    args = _parser().parse_args(words)
    logging.getLogger("fairseq").setLevel(logging.WARNING)

    def body() -> None:
        if args.table:
            records = [record for path in args.table for record in read_records(path, KEYS)]
            print(table(records), end="")
            return
        need_device(args.device)
        command = portable(shlex.join(["diet-mt", "bench", "encoder", *words]))
        for shape in args.shapes:
            for record in measure(shape, args):
                print(json.dumps({**record, **machine(args.device, False, command)}), flush=True)

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
