"""Scores of given translations by teacher forcing: no search, no cache, no padding, no batch."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils

# A line of scores is printed with four decimals, and float32 rounds differently in another order.
TOLERANCE = 3e-4


def load(*checkpoints: Path, **overrides: Any) -> tuple[list[torch.nn.Module], Any]:
    """Models in ``eval()`` and their task."""
    paths = [str(path) for path in checkpoints]
    models, _, task = checkpoint_utils.load_model_ensemble_and_task(paths, overrides)
    for model in models:
        model.eval()
    return models, task


@torch.no_grad()
def positional_scores(
    models: list[torch.nn.Module], task: Any, source: str, target: str
) -> list[float]:
    """log2 of the mean probability of each word of ``target`` and of its end, (T,)."""
    src = task.source_dictionary.encode_line(source, add_if_not_exist=False).long()
    tgt = task.target_dictionary.encode_line(target, add_if_not_exist=False).long()
    start = tgt.new_tensor([task.target_dictionary.eos()])
    fed = torch.cat([start, tgt[:-1]])[None]  # (1, T)
    each = []
    for model in models:
        logits = model(src[None], torch.tensor([len(src)]), fed)[0]  # (1, T, vocabulary)
        each.append(logits[0].double().log_softmax(-1))
    mean = torch.stack(each).logsumexp(0) - math.log(len(each))  # (T, vocabulary)
    return [float(row[word]) / math.log(2) for row, word in zip(mean, tgt, strict=True)]
