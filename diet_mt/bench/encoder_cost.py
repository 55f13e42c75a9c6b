"""What each encoding costs an encoder, beside one with learned positions at the input (Chen et al.
2021, table 1); what is measured, and of which models, is in the help of ``diet-mt bench encoder``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..blocks import Grid, markdown_table, number
from ..command_line import need_known
from ..evaluation.fairseq_options import quiet
from ..models.diet_roberta import DietRobertaModel
from ..positions import NAMES
from .encoders import SHAW, make_roberta
from .machine import grouped, machine, need_device, take_turns
from .process.timing import numbers, ratios

BASELINE = "learned"
# What each encoding takes turns with: the baseline, or itself with segments at the input.
OVER = (BASELINE, "segments-at-input")
MEASURES = ("train", "forward")
# Layers, width, feed-forward, heads (Turc et al. 2019; Devlin et al. 2018), and the batch that
# keeps a step of either near a second on two cores.
SHAPES = {"small": (4, 512, 2048, 8), "base": (12, 768, 3072, 12)}
BATCHES = {"small": 8, "base": 2}
# What the table reads of a record.
KEYS = ("shape", "encoding", "measure", "ms_median", "ratio_median", "command")
POSITIONS, VOCABULARY, MASKED = 512, 30_000, 0.15
# The paper's models, where they are not those of the architecture with segments at the input.
MODELS: dict[str, dict[str, Any]] = {
    "diet-abs": {"segments": "per-head"},
    "diet-rel": {"segments": "per-head"},
    "shaw": SHAW,
}

# Chen et al. 2021, table 1, in percent, TPU v2: (train, forward) by shape.
PAPER = {
    "shaw": {"base": (13, 33), "small": (24, 65)},
    "tupe-rel": {"base": (1, 19), "small": (4, 27)},
    "diet-abs": {"base": (0, 0), "small": (0, 1)},
    "diet-rel": {"base": (0, 0), "small": (0, 0)},
}


def make_bert(encoding: str, shape: str, **changes: Any) -> DietRobertaModel:
    """BERT with its output layer in one of ``SHAPES``, the same at every call; ``changes``: of the
    paper's model.
    """
    layers, width, inner, heads = SHAPES[shape]
    model = {
        "segments": "input",
        "encoder_layers": layers,
        "encoder_embed_dim": width,
        "encoder_ffn_embed_dim": inner,
        "encoder_attention_heads": heads,
        "max_source_positions": POSITIONS,
        "dropout": 0.1,
        "attention_dropout": 0.1,
        **MODELS.get(encoding, {}),
        **changes,
    }
    return make_roberta(encoding, vocabulary=VOCABULARY, **model)


def make_cases(
    model: DietRobertaModel, tokens: Tensor, masked: Tensor
) -> dict[str, Callable[[], None]]:
    """``train`` and ``forward`` over ``tokens`` (B, S), of which the second half is of the second
    segment; predicted are those ``masked`` (B, S).
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    segments = torch.arange(tokens.size(1), device=tokens.device).ge(tokens.size(1) // 2)
    segments = segments.long().expand_as(tokens)

    def train() -> None:
        model.train()
        logits, _ = model(tokens, masked_tokens=masked, segment_ids=segments)  # (masked, V)
        F.cross_entropy(logits, tokens[masked]).backward()
        optimizer.step()
        optimizer.zero_grad()

    @torch.no_grad()
    def forward() -> None:
        model.eval()
        model(tokens, features_only=True, segment_ids=segments)

    return {"train": train, "forward": forward}


@dataclass(frozen=True)
class EncoderSettings:
    """What is measured, and how often."""

    encodings: Sequence[str]  # none: all
    measures: Sequence[str]
    over: str  # one of OVER
    device: str
    tokens: int  # in a sentence
    batch: int | None  # sentences; None: as BATCHES says
    rounds: int  # timed turns of each pair
    warmup: int  # untimed turns before


def measure_all(shapes: Sequence[str], how: EncoderSettings, command: str) -> None:
    """Prints the records of each shape. Raises UserError."""
    quiet()
    need_known("encoding", how.encodings, NAMES)
    how = replace(how, encodings=how.encodings or list(NAMES))
    need_device(how.device)
    for shape in shapes:
        for record in measure(shape, how):
            print(json.dumps({**record, **machine(how.device, False, command)}), flush=True)


def measure(shape: str, how: EncoderSettings) -> Iterator[dict[str, Any]]:
    """One record for each measure and encoding."""
    generator = torch.Generator().manual_seed(1)
    size = how.batch or BATCHES[shape], how.tokens
    tokens = torch.randint(4, VOCABULARY, size, generator=generator).to(how.device)
    masked = torch.rand(size, generator=generator).lt(MASKED).to(how.device)
    names = [BASELINE, *(name for name in how.encodings if name != BASELINE)]
    for name in names:
        itself = how.over != BASELINE
        other = make_bert(name, shape, segments="input") if itself else make_bert(BASELINE, shape)
        # Both in memory and in turn, nothing else beside them: the closest comparison there is.
        pair = {
            who: make_cases(model.to(how.device), tokens, masked)
            for who, model in (("baseline", other), ("own", make_bert(name, shape)))
        }
        for kind in how.measures:
            kept = {who: cases[kind] for who, cases in pair.items()}
            label = f"{shape} {how.device} {name} {kind}"
            seconds = take_turns(kept, label, how.device, how.rounds, how.warmup)
            yield {
                "shape": shape,
                "encoding": name,
                "over": how.over,
                "measure": kind,
                "batch": size[0],
                "tokens": size[1],
                "rounds": how.rounds,
                **numbers("ms_", [1000 * value for value in seconds["own"]]),
                **numbers("ratio_", ratios(seconds["own"], seconds["baseline"])),
            }


def table(records: list[dict[str, Any]]) -> str:
    """Markdown: a table for each shape and machine, in percent over the baseline."""
    out = []
    groups = grouped(records, "encoding", _where)
    for (shape, circumstances), rows in groups.items():
        out += [f"**{shape}**", ""]
        (over,) = {row.get("over", BASELINE) for row in next(iter(rows.values())).values()}
        heads = ["encoding"]
        for kind in MEASURES:
            heads += [f"{kind}, ms", f"over {over}", *(["paper"] if over == BASELINE else [])]
        lines = []
        for name, row in rows.items():
            cells = [name]
            for place, kind in enumerate(MEASURES):
                cells += _cells(row.get(kind))
                if over == BASELINE:
                    paper = PAPER.get(name, {}).get(shape[5:].lower())
                    cells.append(f"{paper[place]:+d} %" if paper else "")
            lines.append(cells)
        out.append(markdown_table(Grid(heads, lines)))
        out += ["", f"Median (quartiles); over {over}: median of the rounds' ratios.", ""]
        out += [f"The row `{BASELINE}` compares two copies of the same encoder: the error.", ""]
        out += [circumstances, ""]
    return "\n".join(out)


def _where(record: dict[str, Any]) -> tuple[str, str]:
    size = f"{record['batch']} x {record['tokens']} tokens"
    return f"BERT_{record['shape'].upper()}", f"{size}; rounds: {record['rounds']}"


def _cells(record: dict[str, Any] | None) -> list[str]:
    if record is None:
        return ["", ""]
    said = [number(100 * record[f"ratio_{key}"] - 100, "+.1f") for key in ("low", "median", "high")]
    return [f"{record['ms_median']:.0f}", f"{said[1]} % ({said[0]} to {said[2]})"]
