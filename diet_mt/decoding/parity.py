"""Comparison of all hypotheses of our beam search and fairseq's."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

import torch
from fairseq import utils
from fairseq.sequence_generator import SequenceGenerator

from .generator import BeamSearchGenerator

Hypotheses = list[dict[str, Any]]


class Searches:
    """Both searches with one model, over one split of the data of its task."""

    def __init__(
        self,
        model: Any,
        cfg: Any,
        task: Any,
        *,
        subset: str,
        max_tokens: int,
        beam: int,
        lenpen: float,
    ) -> None:
        self.model, self.models = model, [model]
        model.prepare_for_inference_(cfg)
        task.load_dataset(subset)
        self.dataset = task.dataset(subset)
        self.batches = task.get_batch_iterator(
            dataset=self.dataset,
            max_tokens=max_tokens,
            max_positions=self.model.max_positions(),
        ).next_epoch_itr(shuffle=False)
        self.generators = [
            kind(self.models, task.target_dictionary, beam_size=beam, len_penalty=lenpen)
            for kind in (BeamSearchGenerator, SequenceGenerator)
        ]

    def decode(self, batch: dict[str, Any]) -> list[list[Hypotheses]]:
        """The hypotheses of a batch, by our search and by fairseq's."""
        return [generator.generate(self.models, batch) for generator in self.generators]

    def agree_in_float64(self, sentence: int) -> bool:
        """Whether both searches agree on a sentence, alone and in double precision."""
        with in_float64(self.models):
            ours, theirs = self.decode(self.dataset.collater([self.dataset[sentence]]))
        return all(_same(one, two) for one, two in zip_longest(ours[0], theirs[0]))

    def compared(self) -> dict[str, Any]:
        """:func:`compare` over the whole split; ``tie``: where both agree in double precision."""
        numbers: list[int] = []
        hypotheses: tuple[list[Hypotheses], list[Hypotheses]] = [], []
        for number, batch in enumerate(self.batches, start=1):
            print(f"batch {number} of {len(self.batches)}", file=sys.stderr)
            numbers += batch["id"].tolist()
            for all_of, more in zip(hypotheses, self.decode(batch), strict=True):
                all_of += more
        record = compare(numbers, *hypotheses)
        for difference in record["differences"]:
            difference["tie"] = self.agree_in_float64(difference["sentence"])
        return {"encoding": self.model.signature, **record}


@contextmanager
def in_float64(models: Sequence[Any]) -> Iterator[None]:
    """The models and fairseq's search, whose scores are float, in double precision."""

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
    """Whether both hypotheses exist and have the same tokens."""
    return one is not None and two is not None and torch.equal(one["tokens"], two["tokens"])


def compare(numbers: list[int], ours: list[Hypotheses], theirs: list[Hypotheses]) -> dict[str, Any]:
    """Equal hypotheses, the largest difference between their scores, and the sentences with other
    hypotheses, or not as many.
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
