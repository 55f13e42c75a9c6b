"""An encoder's activations, with three pads in the batch and without."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from ..blocks import Grid, markdown_table, number
from ..command_line import need_known
from ..positions import NAMES
from .encoders import make_encoder
from .machine import machine, taken

ENCODINGS = ("none", "diet-rel", "diet-abs", "t5")
SIZES = {"layers": 6, "embed_dim": 256, "ffn_embed_dim": 1024, "attention_heads": 8}
SENTENCES, TOKENS, PADS, VOCABULARY = 16, 128, 3, 1000
# What the table reads of a record.
KEYS = ("encoding", "padded", "unpadded", "command")
MEASURES = {"kept_bytes": "kept for the gradients", "peak_bytes": "peak of a forward pass"}


def kept_for_backward(encoder: nn.Module, tokens: Tensor) -> int:
    """Bytes that one forward pass over ``tokens`` (B, S) keeps for the gradients.

    Parameters are left out, and what several operations keep counts once.
    """
    own = {parameter.untyped_storage().data_ptr() for parameter in encoder.parameters()}
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        # Held until all is counted: what is freed could lend its address to another.
        out = encoder(tokens)["encoder_out"][0]
    assert out.requires_grad
    return sum(kept.values())


def peak_of_forward(encoder: nn.Module, tokens: Tensor) -> int:
    """Bytes that an evaluation of ``tokens`` (B, S) holds at its peak, its kernels' included."""
    # Of the profiler, which would name its own beginning and end on stderr.
    os.environ.setdefault("KINETO_LOG_LEVEL", "9")
    with torch.no_grad(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        encoder(tokens)
    events = seen.profiler.kineto_results.events()
    changes = [(event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]"]
    changes.sort(key=lambda change: change[0])
    return max(itertools.accumulate(size for _, size in changes))


def measure(encoding: str) -> dict[str, dict[str, int]]:
    """Of ``padded`` and ``unpadded`` sentences, the measures of an encoder with dropout 0.1."""
    sizes = {f"encoder_{name}": size for name, size in SIZES.items()}
    options = {**sizes, "max_source_positions": TOKENS, "dropout": 0.1}
    encoder = make_encoder(encoding, vocabulary=VOCABULARY, **options)
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(4, VOCABULARY, (SENTENCES, TOKENS), generator=generator)
    padded = tokens.clone()
    padded[0, -PADS:] = encoder.padding_idx
    return {
        name: {
            "kept_bytes": kept_for_backward(encoder.train(), batch),
            "peak_bytes": peak_of_forward(encoder.eval(), batch),
        }
        for name, batch in (("unpadded", tokens), ("padded", padded))
    }


def table(records: list[dict[str, Any]]) -> str:
    """Markdown: a line for each encoding."""
    heads = ["encoding"]
    for said in MEASURES.values():
        heads += [said, f"with {PADS} pads", "more"]
    rows = []
    for record in records:
        cells = [record["encoding"]]
        for name in MEASURES:
            without, padded = record["unpadded"][name], record["padded"][name]
            cells += [f"{size / 2**20:.1f} MiB" for size in (without, padded)]
            cells.append(f"{number(100 * padded / without - 100, '+.1f')} %")
        rows.append(cells)
    first = records[0]
    out = [
        markdown_table(Grid(heads, rows)),
        "",
        f"Encoder of {first['layers']} layers, width {first['embed_dim']}, "
        f"{first['attention_heads']} heads, {first['sentences']} x {first['tokens']} tokens; "
        + taken(first),
        "",
    ]
    return "\n".join(out)


def measure_all(encodings: Sequence[str], command: str) -> None:
    """Prints the record of each encoding; none named: of ENCODINGS. Raises UserError."""
    shape = {**SIZES, "sentences": SENTENCES, "tokens": TOKENS, "pads": PADS}
    facts = machine("cpu", False, command)
    need_known("encoding", encodings, NAMES)
    for encoding in encodings or ENCODINGS:
        print(json.dumps({"encoding": encoding, **measure(encoding), **shape, **facts}), flush=True)
