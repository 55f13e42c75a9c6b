"""Memory of an encoder's activations, with and without three pads in the batch.

python results/padding_memory/measure.py > results/padding_memory/xeon.jsonl
python results/padding_memory/measure.py results/padding_memory/*.jsonl > results/padding_memory.md
"""

import itertools
import json
import os
import sys
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from diet_mt.bench.rows import circumstances, environment, read_records
from diet_mt.evaluation.fairseq_options import quiet
from diet_mt.report.blocks import Table, markdown_table, number

SIZES = {"layers": 6, "embed_dim": 256, "ffn_embed_dim": 1024, "attention_heads": 8}
BATCH = {"sentences": 16, "tokens": 128, "pads": 3}
MEASURES = {"kept_bytes": "saved for backward", "peak_bytes": "peak of a forward pass"}


def kept_for_backward(encoder, tokens):
    """Bytes, each storage once and without parameters; ``tokens`` (B, S)."""
    parameters = {each.untyped_storage().data_ptr() for each in encoder.parameters()}
    kept = {}

    def pack(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = encoder(tokens)["encoder_out"][0]  # alive, or an address could be used again
    assert out.requires_grad
    return sum(size for place, size in kept.items() if place not in parameters)


def peak_of_forward(encoder, tokens):
    """Bytes that an evaluation of ``tokens`` (B, S) holds at its peak, its kernels' included."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "9")  # or the profiler reports on stderr
    with torch.no_grad(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as trace:
        encoder(tokens)
    events = trace.profiler.kineto_results.events()
    changes = [(each.start_ns(), each.nbytes()) for each in events if each.name() == "[memory]"]
    changes.sort(key=lambda change: change[0])
    return max(itertools.accumulate(size for _, size in changes))


def measure(encoding, sizes=SIZES, vocabulary=1000):
    from diet_mt.bench.speed import model_words
    from diet_mt.bench.worker import RANDOM_DATA, Job, System

    words = [RANDOM_DATA, *model_words(encoding.replace("-", "_"), sizes), "--dropout", "0.1"]
    job = Job([*words, "--max-source-positions", str(BATCH["tokens"])], None, 1, vocabulary)
    encoder = System(job).new_model().encoder
    shape, random = (BATCH["sentences"], BATCH["tokens"]), torch.Generator().manual_seed(1)
    tokens = {"unpadded": torch.randint(4, vocabulary, shape, generator=random)}
    tokens["padded"] = tokens["unpadded"].clone()
    tokens["padded"][0, -BATCH["pads"] :] = encoder.padding_idx
    bytes_of = {}
    for name, batch in tokens.items():
        kept = kept_for_backward(encoder.train(), batch)
        bytes_of[name] = {"kept_bytes": kept, "peak_bytes": peak_of_forward(encoder.eval(), batch)}
    return bytes_of


def page(files):
    records = read_records(files, ("encoding", "padded", "unpadded", "command"))
    rows, first = [[record["encoding"]] for record in records], records[0]
    for row, record in zip(rows, records, strict=True):
        for name in MEASURES:
            one, other = record["unpadded"][name], record["padded"][name]
            row += [f"{one / 2**20:.1f} MiB", f"{other / 2**20:.1f} MiB"]
            row.append(f"{number(100 * other / one - 100, '+.1f')} %")
    heads = [head for name in MEASURES.values() for head in (name, "with 3 pads", "more")]
    table = markdown_table(Table(["encoding", *heads], rows))
    what = f"Encoder of {first['layers']} layers, width {first['embed_dim']}, "
    what += f"{first['attention_heads']} heads, {first['sentences']} x {first['tokens']} tokens; "
    return f"{table}\n\n{what}{circumstances(first)}\n"


if __name__ == "__main__":
    if sys.argv[1:]:
        print(page([Path(name) for name in sys.argv[1:]]), end="")
    else:
        quiet()
        facts = SIZES | BATCH | environment("cpu", "", [])
        facts["command"] = "results/padding_memory/measure.py"
        for encoding in ("none", "diet-rel", "diet-abs", "t5"):
            print(json.dumps({"encoding": encoding, **measure(encoding), **facts}), flush=True)
