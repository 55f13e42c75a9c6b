"""The search of ``search.py`` in fixed shapes, for a GPU: no step reads from the device.

Batches are padded to one of a few numbers of sentences, with K hypotheses each from the first step
to the last. Tokens and parents are stored by step and traced back at the end. After each period of
steps, Python reads the numbers of finished hypotheses; finished sentences are dropped if that
halves the batch.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice
from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor

from ..layers.fixed_run import PERIOD, SLOTS, FixedRun, longest, rounded
from ..layers.run import is_product
from ..nn.precision import at_least_float32
from ..positions import PositionRange
from ..system.errors import UserError
from .candidates import Vocabulary
from .replay import Replays
from .search import NO_TRANSLATION, Hypothesis, SearchOptions

# Up to this size, a power of two, batches are padded to powers of two and not shrunk further.
FEWEST = 16


def serves(decoder: Any, options: SearchOptions, source: int) -> bool:
    """Whether this search supports a decoder, options, and sources of ``source`` tokens."""
    targets, sources = longest(decoder)
    return (
        options.no_repeat_ngram_size == 0
        and options.max_len < targets
        and source <= sources
        and all(layer.encoder_attn is not None for layer in decoder.layers.children())
        and all(is_product(each) for each in decoder.modules() if hasattr(each, "in_features"))
    )


def filled_up(sentences: int) -> int:
    """``sentences`` rounded up, to a power of two up to 16, then by at most an eighth."""
    power = 1 << max((sentences - 1).bit_length(), 0)
    return power if power <= FEWEST else rounded(sentences, power // 16)


class FixedSearch:
    """Search for one batch.

    ``source``: encoder output (S, B, E'), its key padding (B, S) or None, and its positions, from
    :func:`~diet_mt.layers.decoder.source_of`.
    """

    def __init__(
        self,
        decoder: Any,
        vocabulary: Vocabulary,
        options: SearchOptions,
        replays: Replays,
        source: Tuple[Optional[Tensor], Optional[Tensor], PositionRange],
    ) -> None:
        encoded, key_padding, keys = source
        assert encoded is not None
        self._decoder, self._vocabulary = decoder, vocabulary
        self._options, self._replays = options, replays
        self._count, beam = encoded.size(1), options.beam
        constant = replace(options, max_len=0, min_len=0, bos=0)
        replays.begin(list(decoder.parameters()), constant)
        store = replays.store
        vocabulary.hold(store)
        sentences = filled_up(self._count)
        self._run = FixedRun(decoder, store, encoded, key_padding, keys, sentences, beam)
        dtype, device = at_least_float32(encoded.dtype), store.device
        self._numbers = torch.arange(sentences, device=device)
        put = store.put
        self._words = put("words", self._numbers.new_full((sentences, beam), options.bos))
        scores = torch.full((sentences, beam), -math.inf, dtype=dtype, device=device)
        scores[:, 0] = 0.0  # at first there is one hypothesis
        self._scores = put("scores", scores)
        # Finished hypotheses per sentence; sentences that pad the batch are done from the start.
        self._done = put("done", self._numbers.ge(self._count) * beam)
        # Their sums, lengths without the end mark, and parents; the last column is unused.
        self._sums = put("sums", torch.full_like(scores[:, :1], -math.inf).expand(-1, beam + 1))
        self._ends = put("ends", self._words.new_zeros(sentences, 2, beam + 1))
        self._chunks: List[Tuple[Tensor, Tensor]] = []  # history of all sentences, by period
        self._all_done, self._all_sums, self._all_ends = (
            each.clone() for each in (self._done, self._sums, self._ends)
        )

    @torch.no_grad()
    def hypotheses(self) -> List[List[Hypothesis]]:
        """Finished hypotheses of each sentence, best first. Raises UserError if one has none."""
        options, run, beam = self._options, self._run, self._options.beam
        step, width = 0, rounded(PERIOD * options.beam, SLOTS)
        run.start(width)
        while True:
            stop = min(step + PERIOD, options.max_len + 1)
            self._period(step, stop)
            self._store_period(stop - step)
            step = stop
            if step <= options.max_len:
                run.begin(step)  # while the device is busy
            read = run.cache.mask.eq(0).any(1)  # (B, width)
            counts = torch.stack([read.sum(1), self._done]).tolist()  # waits for the device
            going = [number for number, done in enumerate(counts[1]) if done < beam]
            if step > options.max_len or not going:
                return self._finished()
            remaining = self._remaining(counts[1], going)
            if remaining is not None:
                self._keep(remaining)
            count = max(counts[0])
            run.cache.carry(
                remaining, read, count, rounded(count + PERIOD * beam, SLOTS), run.length
            )

    def _period(self, start: int, stop: int) -> None:
        """Runs the steps ``start .. stop - 1``."""
        options, store, run = self._options, self._replays.store, self._run
        sentences, beam = self._words.shape
        early = [-math.inf if each < options.min_len else 0.0 for each in range(start, stop)]
        early += [0.0] * (start + PERIOD - stop)
        self._end_bias = store.put("end bias", torch.tensor(early, device=store.device))
        shape = PERIOD, sentences, beam
        # Tokens and parents (2, PERIOD, B, K), and their sums (PERIOD, B, K).
        self._history = store.view("history", (2, *shape), torch.long)
        self._totals = store.view("totals", shape, self._scores.dtype)
        key = sentences, run.sources, run.cache.width, run.length
        for step in range(start, stop):
            if step == options.max_len:  # once in a batch: not worth a graph
                self._replays((key, "last"), lambda: self._step(last=True), again=False)
            else:
                self._replays(key, self._step, again=step + 1 < min(stop, options.max_len))

    def _step(self, last: bool = False) -> None:
        """Decodes a token of each hypothesis and continues with the best candidates."""
        decoder, run, options = self._decoder, self._run, self._options
        beam = options.beam
        x = decoder.embed(self._words.view(-1, 1), run.position())  # (1, rows, E)
        x, _, _ = decoder.run_layers(x, run.calls())
        features = x[0] if decoder.project_out_dim is None else decoder.project_out_dim(x[0])
        limits = replace(options.limits, forbidden=options.suppressed)
        if last:
            limits = replace(limits, only=options.eos)
        else:
            limits = replace(limits, added=(options.eos, self._end_bias.index_select(0, run.row)))
        candidates = self._vocabulary.best(features, self._scores, 2 * beam, limits)
        values, entries, parents = candidates  # (B, 2 * beam) each
        ends = entries.eq(options.eos) & values.gt(-math.inf)  # False for NaN
        self._finish(values, parents, ends)
        # Stable: the best unfinished candidates, in their order.
        going = ends.to(torch.uint8).sort(dim=1, stable=True).indices[:, :beam]
        values, entries, parents = (each.gather(1, going) for each in candidates)
        self._scores.copy_(values)
        self._words.copy_(entries)
        self._history.index_copy_(1, run.row, torch.stack([entries, parents]).unsqueeze(1))
        self._totals.index_copy_(0, run.row, values.unsqueeze(0))
        run.move(parents)

    def _finish(self, values: Tensor, parents: Tensor, ends: Tensor) -> None:
        """Stores hypotheses that end among the best ``beam`` of the candidates (B, 2 * beam), at
        most ``beam`` per sentence.
        """
        beam = self._options.beam
        ends, values, parents = ends[:, :beam], values[:, :beam], parents[:, :beam]
        place = self._done.unsqueeze(1) + ends.cumsum(1) - 1
        place = place.masked_fill(~ends, beam).clamp_(max=beam)  # (B, beam)
        self._sums.scatter_(1, place, values)
        lengths = self._run.step.expand_as(parents)
        self._ends.scatter_(
            2, place.unsqueeze(1).expand(-1, 2, -1), torch.stack([lengths, parents], dim=1)
        )
        self._done.add_(ends.sum(1)).clamp_(max=beam)

    def _store_period(self, steps: int) -> None:
        """Copies the results of a period into those of the whole batch."""
        for all_of, own in (
            (self._all_done, self._done),
            (self._all_sums, self._sums),
            (self._all_ends, self._ends),
        ):
            all_of.index_copy_(0, self._numbers, own)
        shape = steps, self._all_done.size(0), self._options.beam
        history = self._history.new_zeros(2, *shape)
        totals = self._totals.new_zeros(shape)
        history.index_copy_(2, self._numbers, self._history[:, :steps])
        totals.index_copy_(1, self._numbers, self._totals[:steps])
        self._chunks.append((history, totals))

    def _remaining(self, finished: List[int], going: List[int]) -> Optional[Tensor]:
        """Sentences of a batch at most half as large, padded with finished ones, or None."""
        count = max(filled_up(len(going)), FEWEST)
        count = 1 << (count - 1).bit_length()
        if count > len(finished) // 2:
            return None
        done = [number for number, each in enumerate(finished) if each == self._options.beam]
        remaining = going + done[: count - len(going)]
        return torch.tensor(remaining, device=self._words.device)

    def _keep(self, numbers: Tensor) -> None:
        """Drops the other sentences from the batch."""
        self._numbers = self._numbers[numbers]
        for name in ("words", "scores", "done", "sums", "ends"):
            part = getattr(self, f"_{name}")[numbers]
            setattr(self, f"_{name}", self._replays.store.put(name, part))

    def _finished(self) -> List[List[Hypothesis]]:
        """Finished hypotheses of each sentence, traced back."""
        options, count, beam = self._options, self._count, self._options.beam
        done, sums = self._all_done[:count], self._all_sums[:count, :beam]
        lengths, parents = self._all_ends[:count, :, :beam].unbind(1)  # (B, beam)
        history = torch.cat([each for each, _ in self._chunks], dim=1)[:, :, :count]
        totals = torch.cat([each for _, each in self._chunks])[:, :count]  # (steps, B, beam)
        steps = totals.size(0)
        scores = sums
        if options.divisor is not None:
            table = [options.divisor(step + 1, options.alpha) for step in range(steps)]
            scores = sums / sums.new_tensor(table)[lengths]
        numbers = done.tolist()
        if not all(numbers):
            raise UserError(NO_TRANSLATION)
        ended = torch.arange(beam, device=done.device) < done[:, None]
        order = (
            scores.masked_fill(~ended, -math.inf).sort(dim=1, descending=True, stable=True).indices
        )
        scores, sums, lengths, parents = (
            each.gather(1, order) for each in (scores, sums, lengths, parents)
        )
        words = lengths.new_full((steps, count, beam), options.eos)
        cumulative = sums.expand(steps, -1, -1).clone()
        for step in range(steps - 1, -1, -1):
            inside = lengths > step
            for all_of, one in ((words, history[0, step]), (cumulative, totals[step])):
                all_of[step] = torch.where(inside, one.gather(1, parents), all_of[step])
            parents = torch.where(inside, history[1, step].gather(1, parents), parents)
        by_token = torch.cat([cumulative[:1], cumulative.diff(dim=0)])
        words, by_token = words.permute(1, 2, 0), by_token.permute(1, 2, 0)  # (B, beam, steps)
        return self._split(words, by_token, scores, lengths.tolist(), numbers)

    def _split(
        self, words: Tensor, by_token: Tensor, scores: Tensor, lengths: List[List[int]], counts: Any
    ) -> List[List[Hypothesis]]:
        """Tensors (B, beam, steps), ``scores`` (B, beam) -> the first ``counts`` hypotheses."""
        sizes = [one + 1 for row, count in zip(lengths, counts, strict=True) for one in row[:count]]
        ended = torch.arange(scores.size(1)) < torch.tensor(counts)[:, None]
        inside = torch.arange(words.size(2)) <= torch.tensor(lengths)[..., None]
        inside = (inside & ended[..., None]).to(words.device)
        tokens, parts = words[inside].split(sizes), by_token[inside].split(sizes)
        hypotheses = map(Hypothesis, tokens, scores[ended.to(scores.device)].unbind(), parts)
        return [list(islice(hypotheses, count)) for count in counts]
