"""Plain beam search over one decoding run.

Hypotheses, scores and the order of events are those of ``fairseq.sequence_generator``: of 2 * beam
candidates, those that end among the first half are finished, the best others continue, and a
sentence is done when it has ``beam`` finished hypotheses. To compute less, the first step has one
row per sentence, and the last sentences replace those that are done.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor

from ..layers.run import DecodingRun
from ..nn.precision import at_least_float32
from ..system.errors import UserError
from .candidates import Limits, Vocabulary
from .length_penalty import Penalty

NO_TRANSLATION = (
    "a sentence has no translation: the model's scores are not numbers (NaN), or "
    "the end of a sentence is impossible"
)


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search; lengths in tokens, without the end mark.

    ``divisor``: the length penalty, or None (``--unnormalized``). ``suppressed``: entries that are
    never chosen, except by a prefix.
    """

    beam: int
    max_len: int
    min_len: int
    eos: int
    bos: int
    limits: Limits
    alpha: float = 1.0
    divisor: Optional[Penalty] = None
    no_repeat_ngram_size: int = 0
    suppressed: Tuple[int, ...] = ()


@dataclass(frozen=True)
class Hypothesis:
    """``tokens`` (T,) with the end mark, their score (), and log-probabilities by token (T,)."""

    tokens: Tensor
    score: Tensor
    positional_scores: Tensor


class BeamSearch:
    """Search for the sentences of one ``run``, from the first token to the last hypothesis.

    ``prefix``: (B, P), tokens that translations must begin with, right-padded; or None.
    """

    def __init__(
        self,
        decoder: Any,
        run: DecodingRun,
        vocabulary: Vocabulary,
        options: SearchOptions,
        prefix: Optional[Tensor] = None,
    ) -> None:
        self._decoder, self._run, self._vocabulary = decoder, run, vocabulary
        self._options, self._prefix = options, prefix
        count, weight = run.rows, decoder.embed_tokens.weight
        self._finished: List[List[Hypothesis]] = [[] for _ in range(count)]
        self._numbers = list(range(count))  # of the sentences that go on
        self._tokens = torch.full((count, 1), options.bos, dtype=torch.long, device=weight.device)
        # (rows, 1 + T): summed log-probabilities, 0 before the first token.
        self._scores = weight.new_zeros(count, 1, dtype=at_least_float32(weight.dtype))

    @torch.no_grad()
    def hypotheses(self) -> List[List[Hypothesis]]:
        """Finished hypotheses of each sentence, best first. Raises UserError if one has none."""
        for step in range(self._options.max_len + 1):
            values, entries, parents = self._candidates(step)
            ends = entries.eq(self._options.eos) & values.gt(-math.inf)  # False for NaN
            remaining: Optional[List[int]] = None
            if bool(ends.any()):
                remaining = self._finish(step, values, parents, ends)
                if not remaining:
                    break
                # Stable: the best unfinished candidates, in their order.
                going = ends.to(torch.uint8).sort(dim=1, stable=True).indices
                values, entries, parents = (
                    each.gather(1, going) for each in (values, entries, parents)
                )
            beam = self._options.beam
            self._go_on(values[:, :beam], entries[:, :beam], parents[:, :beam], remaining)
        if not all(self._finished):
            raise UserError(NO_TRANSLATION)
        for hypotheses in self._finished:
            hypotheses.sort(key=lambda one: float(one.score), reverse=True)
        return self._finished

    def _candidates(self, step: int) -> Tuple[Tensor, Tensor, Tensor]:
        """2 * beam candidates of each sentence, (B, 2 * beam); see :meth:`Vocabulary.best`."""
        decoder, run = self._decoder, self._run
        x = decoder.embed(self._tokens[:, -1:], run.next_position)  # (1, rows, E)
        x, _, _ = decoder.run_layers(x, run.calls())
        run.length += 1
        features = x[0] if decoder.project_out_dim is None else decoder.project_out_dim(x[0])
        scores = self._scores[:, -1].view(len(self._numbers), -1)  # (B, K), or (B, 1) at first
        return self._vocabulary.best(features, scores, 2 * self._options.beam, self._limits(step))

    def _limits(self, step: int) -> Limits:
        options, prefix = self._options, self._prefix
        limits = options.limits
        if step >= options.max_len:
            limits = replace(limits, only=options.eos)
        if prefix is not None and step < prefix.size(1) and step < options.max_len:
            limits = replace(limits, forced=prefix[:, step])
        else:
            early = (options.eos,) if step < options.min_len else ()
            limits = replace(limits, forbidden=early + options.suppressed)
        size = options.no_repeat_ngram_size
        if size and step + 2 > size:
            banned = repeats(self._tokens, size, self._vocabulary.size)
            limits = replace(limits, banned=banned)
        return limits

    def _finish(self, step: int, values: Tensor, parents: Tensor, ends: Tensor) -> List[int]:
        """Stores the hypotheses that end among the best ``beam`` candidates (B, 2 * beam).

        Returns the indices of the sentences that go on; the last ones fill the gaps.
        """
        options = self._options
        sentences, ranks = ends[:, : options.beam].nonzero(as_tuple=True)
        width = self._tokens.size(0) // len(self._numbers)
        rows = sentences * width + parents[sentences, ranks]
        totals = values[sentences, ranks]
        end = torch.full_like(rows[:, None], options.eos)
        tokens = torch.cat([self._tokens[rows, 1:], end], dim=1)  # (n, T)
        sums = torch.cat([self._scores[rows], totals[:, None]], dim=1)
        by_token = sums.diff(dim=1)  # (n, T)
        if options.divisor is not None:
            totals = totals / options.divisor(step + 1, options.alpha)
        for sentence, *parts in zip(
            sentences.tolist(), tokens.unbind(0), totals.unbind(0), by_token.unbind(0), strict=True
        ):
            own = self._finished[self._numbers[sentence]]
            if len(own) < options.beam:
                own.append(Hypothesis(*parts))
        if step == options.max_len:
            return []
        going = [len(self._finished[number]) < options.beam for number in self._numbers]
        return fill_gaps(going)

    def _go_on(
        self, values: Tensor, entries: Tensor, parents: Tensor, remaining: Optional[List[int]]
    ) -> None:
        """Continues each sentence with its ``beam`` candidates (B, beam).

        ``remaining``: the result of :meth:`_finish`, or None if all go on.
        """
        width = self._tokens.size(0) // len(self._numbers)
        moved: Optional[Tensor] = None
        sentences = torch.arange(values.size(0), device=values.device)
        if remaining is not None and len(remaining) < len(self._numbers):
            moved = sentences = torch.tensor(remaining, device=values.device)
            values, entries, parents = (each[sentences] for each in (values, entries, parents))
            self._numbers = [self._numbers[number] for number in remaining]
            if self._prefix is not None:
                self._prefix = self._prefix[sentences]
        order = (sentences[:, None] * width + parents).flatten()  # (B * beam,)
        self._run.move(order, moved)
        self._tokens = torch.cat([self._tokens[order], entries.reshape(-1, 1)], dim=1)
        self._scores = torch.cat([self._scores[order], values.reshape(-1, 1)], dim=1)


def fill_gaps(going: List[bool]) -> List[int]:
    """Index of the sentence at each place after the last ones fill the gaps of finished ones:
    ``[True, False, True, True]`` -> ``[0, 3, 2]``.
    """
    count = sum(going)
    last = [number for number in range(count, len(going)) if going[number]]
    return [number if going[number] else last.pop() for number in range(count)]


def repeats(tokens: Tensor, size: int, entries: int) -> Tensor:
    """``tokens`` (rows, T) -> (rows, V) bool: entries that would repeat an n-gram of ``size``."""
    rows, length = tokens.shape
    banned = torch.zeros(rows, entries, dtype=torch.bool, device=tokens.device)
    if length < size:
        return banned
    grams = tokens.unfold(1, size, 1)  # (rows, T - size + 1, size)
    same = grams[..., :-1].eq(tokens[:, None, length - size + 1 :]).all(2)
    row, start = same.nonzero(as_tuple=True)
    banned[row, grams[row, start, -1]] = True
    return banned
