"""Losses of a training with fairseq's Adam, and with the fused one and compiled layers.

python results/same_losses/measure.py > results/same_losses/epyc.jsonl
python results/same_losses/measure.py results/same_losses/*.jsonl > results/same_losses.md
"""

import json
import sys
from pathlib import Path
from unittest.mock import patch

import torch
from fairseq.trainer import Trainer

from diet_mt.bench.rows import circumstances, environment, read_records
from diet_mt.bench.speed import model_words, training_words
from diet_mt.bench.worker import RANDOM_DATA, Job, System
from diet_mt.evaluation.fairseq_options import quiet
from diet_mt.report.blocks import Table, markdown_table
from diet_mt.system.files import PLUGIN

UPDATES, SHOWN = 100, (1, 10, 50, 100)
ULP = 2**-23  # of a float32 between 1 and 2
KEYS = ("encoding", "updates", "usual", "fused", "scaled", "command")


def losses(encoding, *options, factor=1.0):
    """Loss of each update, in nats per token; ``factor`` scales the first parameter."""
    words = [
        RANDOM_DATA,
        *model_words(encoding, {}),
        *training_words(0.0),
        "--lr",
        "0.001",
        *options,
    ]
    system = System(Job(words, str(PLUGIN), 1, 1000, batches=UPDATES))
    system.prepare("forward", tokens=512)
    model = system.model
    with torch.no_grad():
        next(model.parameters()).mul_(factor)
    trainer = Trainer(
        system.cfg, system.task, model, system.task.build_criterion(system.cfg.criterion)
    )
    values, step = [], system.task.train_step

    def recorded(*args, **kwargs):
        loss, tokens, log = step(*args, **kwargs)
        values.append(float(loss.detach()) / tokens)
        return loss, tokens, log

    with patch.object(system.task, "train_step", recorded):
        for batch in system.data:
            trainer.train_step([batch])
    return values


def difference(ones, others):
    """The largest relative one."""
    return max(abs(one - other) / one for one, other in zip(ones, others, strict=True))


def page(files):
    records = read_records(files, KEYS)
    rows = []
    for record in records:
        usual = record["usual"]
        rows.append([
            record["encoding"],
            *(f"{usual[number - 1]:.6f}" for number in SHOWN),
            f"{difference(usual, record['fused']):.1e}",
            f"{difference(usual, record['scaled']):.1e}",
        ])  # fmt: skip
    heads = ["encoding", *(f"loss {n}" for n in SHOWN)]
    heads += ["fused and compiled", "one tensor of weights scaled by 1 + 2⁻²³"]
    table = markdown_table(Table(heads, rows))
    what = f"Losses of {records[0]['updates']} updates in nats per token, tiny models, no dropout, "
    what += "random sentences; the last two columns are the largest relative differences of a loss "
    what += "from fairseq's Adam without `--compile`; "
    return f"{table}\n\n{what}{circumstances(records[0])}\n"


if __name__ == "__main__":
    if sys.argv[1:]:
        print(page([Path(name) for name in sys.argv[1:]]), end="")
    else:
        quiet()
        torch.set_num_threads(1)
        facts = environment("cpu", "", []) | {"command": "results/same_losses/measure.py"}
        for encoding in ("diet_rel", "diet_abs", "rotary"):
            row = {"encoding": encoding, **facts, "updates": UPDATES}
            row["usual"] = losses(encoding, "--use-old-adam")
            row["fused"] = losses(encoding, "--compile")
            row["scaled"] = losses(encoding, "--use-old-adam", factor=1 + ULP)
            print(json.dumps(row), flush=True)
