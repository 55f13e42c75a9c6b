"""All hypotheses of both searches, ours and fairseq's, and where they differ."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.sequence_generator import SequenceGenerator

from .. import plugin as plugin
from ..decoding.generator import BeamSearchGenerator
from ..leaderboard.render import Grid, markdown_table
from .machine import machine

# Scores are sums of some thirty float32 numbers.
ROUNDING = 1e-5
KEYS = ("encoding", "sentences", "hypotheses", "equal", "score_error", "differences", "command")

Hypotheses = list[dict[str, Any]]


@dataclass(frozen=True)
class Settings:
    """What is decoded, and how."""

    subset: str = "test"
    beam: int = 10
    lenpen: float = 0.6
    max_tokens: int = 4096  # of a source batch


def decoded(path: Path, data: Path | None, how: Settings) -> Iterator[tuple[Any, ...]]:
    """For each batch its sentence numbers and the hypotheses of both searches."""
    overrides = {} if data is None else {"data": str(data)}
    models, cfg, task = checkpoint_utils.load_model_ensemble_and_task([str(path)], overrides)
    model = models[0].eval()
    model.prepare_for_inference_(cfg)
    task.load_dataset(how.subset)
    batches = task.get_batch_iterator(
        dataset=task.dataset(how.subset),
        max_tokens=how.max_tokens,
        max_positions=(model.max_positions()),
        required_batch_size_multiple=1,
    ).next_epoch_itr(shuffle=False)
    settings = {"beam_size": how.beam, "len_penalty": how.lenpen}
    both = [
        kind(models, task.target_dictionary, **settings)
        for kind in (BeamSearchGenerator, SequenceGenerator)
    ]
    for number, batch in enumerate(batches, start=1):
        print(f"{path}: batch {number} of {len(batches)}", file=sys.stderr)
        ours, theirs = (generator.generate(models, batch) for generator in both)
        yield model.signature, batch["id"].tolist(), ours, theirs


def compare(numbers: list[int], ours: list[Hypotheses], theirs: list[Hypotheses]) -> dict[str, Any]:
    """What is equal, the largest difference between scores of equal hypotheses, and a line for each
    sentence whose hypotheses are not all the same.
    """
    equal, errors, differences = 0, [0.0], []
    for number, own, other in zip(numbers, ours, theirs, strict=True):
        pairs = list(zip(own, other, strict=True))
        same = [torch.equal(one["tokens"], two["tokens"]) for one, two in pairs]
        equal += sum(same)
        for (one, two), fits in zip(pairs, same, strict=True):
            gap = abs(float(one["score"]) - float(two["score"]))
            if fits:
                by_token = (one["positional_scores"] - two["positional_scores"]).abs().max()
                errors += [gap, float(by_token)]
        if not all(same):
            gaps = [abs(float(one["score"]) - float(two["score"])) for one, two in pairs]
            differences.append(
                {
                    "sentence": number,
                    "ranks": [rank for rank, fits in enumerate(same, start=1) if not fits],
                    "largest_gap": max(gaps),
                    "tie": max(gaps) <= ROUNDING,
                }
            )
    return {
        "sentences": len(numbers),
        "hypotheses": sum(len(own) for own in ours),
        "equal": equal,
        "score_error": max(errors),
        "differences": differences,
    }


def measure(path: Path, data: Path | None, how: Settings) -> dict[str, Any]:
    """The record of one checkpoint."""
    total: dict[str, Any] = {}
    for signature, *batch in decoded(path, data, how):
        found = compare(*batch)
        if not total:
            total = {"encoding": signature, **found}
            continue
        total["score_error"] = max(total["score_error"], found.pop("score_error"))
        for name, value in found.items():
            total[name] += value
    return total


def measure_all(paths: Sequence[Path], data: Path | None, how: Settings, command: str) -> None:
    """Prints the record of each checkpoint. ``data``: None for that of its training."""
    for name in ("fairseq", "hydra"):
        logging.getLogger(name).setLevel(logging.WARNING)
    facts = machine("cpu", False, command)
    for path in paths:
        print(json.dumps({**measure(path, data, how), **facts}), flush=True)


def table(records: list[dict[str, Any]]) -> str:
    """Markdown: a line for each checkpoint, and one for each difference."""
    heads = ["model", "sentences", "hypotheses", "equal", "largest difference of scores"]
    rows = [
        [*(str(record[name]) for name in KEYS[:4]), f"{record['score_error']:.1e}"]
        for record in records
    ]
    out = [markdown_table(Grid(heads, rows)), "", "Differences:", ""]
    listed = [(record["encoding"], each) for record in records for each in record["differences"]]
    for encoding, each in listed:
        out.append(
            f"- {encoding}, sentence {each['sentence']}, ranks {each['ranks']}: scores differ by "
            f"{each['largest_gap']:.1e}, {'a tie' if each['tie'] else 'no tie'}"
        )
    first = records[0]
    out += [] if listed else ["none."]
    out += ["", f"{first['machine']}; torch {first['torch']}; {first['date']}; revision "]
    out[-1] += f"{first['revision'] or 'unknown'}; `{first['command']}`"
    return "\n".join([*out, ""])
