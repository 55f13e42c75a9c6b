"""All hypotheses of both searches, ours and fairseq's, and where they differ."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils, utils
from fairseq.sequence_generator import SequenceGenerator

from .. import plugin as plugin
from ..blocks import Grid, markdown_table
from ..decoding.generator import BeamSearchGenerator
from ..evaluation.fairseq_options import quiet
from .machine import machine, taken

KEYS = ("encoding", "sentences", "hypotheses", "equal", "score_error", "differences", "command")

TIE = "a tie earlier in the search, none in float64"
NOTES = """\
A tie: two candidates of one step have scores that float32 cannot tell apart, and each search goes
on with another one. From there on they are on different ways, so the hypotheses that they end with
may have scores far apart. In float64 both write the same.

Scores of equal hypotheses differ by rounding. They come from sums of up to hundreds of nats in
float32, whose last place is worth 3.1e-05 from 256 on and 6.1e-05 from 512 on; and the
log-probability of a token is the difference of two such sums."""

Hypotheses = list[dict[str, Any]]


@dataclass(frozen=True)
class ParitySettings:
    """What is decoded, and how."""

    subset: str
    beam: int
    lenpen: float
    max_tokens: int  # of a source batch


class Searches:
    """Both searches with one checkpoint, over one part of its data."""

    def __init__(self, path: Path, data: Path | None, how: ParitySettings) -> None:
        overrides = {} if data is None else {"data": str(data)}
        load = checkpoint_utils.load_model_ensemble_and_task
        self.models, cfg, task = load([str(path)], overrides)
        self.model = self.models[0].eval()
        self.model.prepare_for_inference_(cfg)
        task.load_dataset(how.subset)
        self.dataset = task.dataset(how.subset)
        self.batches = task.get_batch_iterator(
            dataset=self.dataset,
            max_tokens=how.max_tokens,
            max_positions=self.model.max_positions(),
        ).next_epoch_itr(shuffle=False)
        settings = {"beam_size": how.beam, "len_penalty": how.lenpen}
        self.generators = [
            kind(self.models, task.target_dictionary, **settings)
            for kind in (BeamSearchGenerator, SequenceGenerator)
        ]

    def decode(self, batch: dict[str, Any]) -> list[list[Hypotheses]]:
        """The hypotheses of a batch, by our search and by fairseq's."""
        return [generator.generate(self.models, batch) for generator in self.generators]

    def agree_in_float64(self, sentence: int) -> bool:
        """Whether both write the same for a sentence, alone and in double precision."""
        with _in_float64(self.models):
            ours, theirs = self.decode(self.dataset.collater([self.dataset[sentence]]))
        return all(_same(one, two) for one, two in zip_longest(ours[0], theirs[0]))


@contextmanager
def _in_float64(models: list[Any]) -> Iterator[None]:
    """The models in double precision, and fairseq's search, which says float for its scores."""

    def log_softmax(x: torch.Tensor, dim: int, onnx_trace: bool = False) -> torch.Tensor:
        return torch.log_softmax(x, dim)

    before = torch.Tensor.float, utils.log_softmax
    for model in models:
        model.double()  # and back: nothing is lost
    torch.Tensor.float, utils.log_softmax = torch.Tensor.double, log_softmax  # type: ignore
    try:
        yield
    finally:
        torch.Tensor.float, utils.log_softmax = before  # type: ignore
        for model in models:
            model.float()


def _same(one: dict[str, Any] | None, two: dict[str, Any] | None) -> bool:
    """Whether there are both hypotheses, with the same tokens."""
    return one is not None and two is not None and torch.equal(one["tokens"], two["tokens"])


def compare(numbers: list[int], ours: list[Hypotheses], theirs: list[Hypotheses]) -> dict[str, Any]:
    """What is equal, the largest difference between scores of equal hypotheses, and a line for each
    sentence whose hypotheses are not all the same, or not as many.
    """
    equal, errors, differences = 0, [0.0], []
    for number, own, other in zip(numbers, ours, theirs, strict=True):
        same = [_same(*pair) for pair in zip_longest(own, other)]
        equal += sum(same)
        pairs = list(zip(own, other, strict=False))
        gaps = [abs(float(one["score"]) - float(two["score"])) for one, two in pairs]
        for (one, two), gap, fits in zip(pairs, gaps, same, strict=False):
            if fits:
                by_token = (one["positional_scores"] - two["positional_scores"]).abs().max()
                errors += [gap, float(by_token)]
        if not all(same):
            differences.append(
                {
                    "sentence": number,
                    "ranks": [rank for rank, fits in enumerate(same, start=1) if not fits],
                    "largest_gap": max(gaps, default=0.0),
                    "hypotheses": [len(own), len(other)],
                }
            )
    return {
        "sentences": len(numbers),
        "hypotheses": sum(len(own) for own in ours),
        "equal": equal,
        "score_error": max(errors),
        "differences": differences,
    }


def measure(path: Path, data: Path | None, how: ParitySettings) -> dict[str, Any]:
    """The record of one checkpoint."""
    searches = Searches(path, data, how)
    numbers: list[int] = []
    ours: list[Hypotheses] = []
    theirs: list[Hypotheses] = []
    for number, batch in enumerate(searches.batches, start=1):
        print(f"{path}: batch {number} of {len(searches.batches)}", file=sys.stderr)
        numbers += batch["id"].tolist()
        for to, found in zip((ours, theirs), searches.decode(batch), strict=True):
            to += found
    total = compare(numbers, ours, theirs)
    for difference in total["differences"]:
        print(f"{path}: sentence {difference['sentence']} in float64", file=sys.stderr)
        difference["tie"] = searches.agree_in_float64(difference["sentence"])
    return {"encoding": searches.model.signature, **total}


def measure_all(
    paths: Sequence[Path], data: Path | None, how: ParitySettings, command: str
) -> None:
    """Prints the record of each checkpoint. ``data``: None for that of its training."""
    quiet()
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
        own, other = each.get("hypotheses", (0, 0))
        counts = "" if own == other else f"{own} hypotheses and {other}; "
        out.append(
            f"- {encoding}, sentence {each['sentence']}, ranks {each['ranks']}: {counts}scores "
            f"differ by {each['largest_gap']:.1e}; {TIE if each['tie'] else 'no tie'}"
        )
    out += ["", NOTES] if listed else ["none.", "", NOTES]
    for line in dict.fromkeys(map(taken, records)):
        out += ["", line]
    return "\n".join([*out, ""])
