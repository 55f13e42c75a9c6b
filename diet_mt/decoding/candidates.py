"""The best continuations of each sentence's hypotheses, without sorting the vocabulary.

On a CPU, logits, softmax and search are computed for a few sentences at a time, to fit the cache.
Only blocks of the vocabulary whose maximum can be among the best are searched, by
``diet_mt/kernels`` or, if these do not support the tensors, by torch's operators.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Optional, Tuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import kernels
from ..layers.int8 import Int8Linear
from ..layers.slots import Store
from ..nn.linear import linear, one_dnn_is_faster
from ..nn.precision import at_least_float32

# Rows of logits computed at once on a CPU. At V = 6,040 (Intel Xeon), products of fewer rows are
# slower, and more rows exceed the cache.
ROWS = 160


@dataclass(frozen=True)
class Limits:
    """Restrictions of the candidates in a step of the search.

    ``unk_penalty`` is subtracted from the unknown word. ``forbidden``: excluded entries. ``forced``
    (B,): the required entry of each sentence, or ``pad`` for any; or None. ``banned`` (B * K, V)
    bool: entries that would repeat an n-gram, or None. ``only``: the single allowed entry, or None.
    ``added``: an entry and a number (1,) that is added to it, or None.
    """

    pad: int
    unk: int
    unk_penalty: float = 0.0
    forbidden: Tuple[int, ...] = ()
    forced: Optional[Tensor] = None
    banned: Optional[Tensor] = None
    only: Optional[int] = None
    added: Optional[Tuple[int, Tensor]] = None


class Vocabulary:
    """Output layer of a decoder in one run: weights (V, E), with V padded to whole blocks.

    Args:
        layer: ``output_projection`` of the decoder, a plain linear layer or one in int8.
    """

    def __init__(self, layer: Union[nn.Linear, Int8Linear]) -> None:
        self.size = layer.out_features
        # Twice as many blocks as entries per block: with twice as many candidates as hypotheses,
        # searching blocks and searching their entries then cost the same.
        self._blocks = max(math.isqrt(2 * self.size), 1)
        self._depth = -(-self.size // self._blocks)
        self._width = self._blocks * self._depth
        more = self._width - self.size
        self._int8 = layer if isinstance(layer, Int8Linear) else None
        self._weight = layer.weight
        self._bias: Optional[Tensor] = layer.bias
        if self._int8 is None:
            self._weight = F.pad(layer.weight, (0, 0, 0, more))
            self._bias = None if layer.bias is None else F.pad(layer.bias, (0, more))
        self._logits = torch.empty(0, 0)

    def hold(self, store: Store) -> None:
        """Moves the copies of the weights to fixed addresses."""
        self._weight = store.put("vocabulary weight", self._weight)
        if self._bias is not None:
            self._bias = store.put("vocabulary bias", self._bias)

    def best(
        self, features: Tensor, scores: Tensor, count: int, limits: Limits
    ) -> Tuple[Tensor, Tensor, Tensor]:
        """The ``count`` best continuations of each sentence, at most K * V - 1, best first.

        ``features`` (B * K, E) and summed log-probabilities ``scores`` (B, K) of K hypotheses ->
        summed log-probabilities, entries and indices of hypotheses, (B, count) each.
        """
        sentences, beams = scores.shape
        parts = 1 if features.device.type != "cpu" else -(-sentences * beams // ROWS)
        step = -(-sentences // min(parts, sentences))
        results = [
            self._best(features, scores, start, min(start + step, sentences), count, limits)
            for start in range(0, sentences, step)
        ]
        values, entries, parents = (torch.cat(parts) for parts in zip(*results, strict=True))
        return values, entries, parents

    def _best(
        self, features: Tensor, scores: Tensor, start: int, stop: int, count: int, limits: Limits
    ) -> Tuple[Tensor, Tensor, Tensor]:
        """:meth:`best` of the sentences ``start .. stop - 1``."""
        sentences, beams = stop - start, scores.size(1)
        rows = slice(start * beams, stop * beams)
        logits = self._multiply(features[rows])  # (rows, padded V)
        count = min(count, beams * self.size - 1)
        if kernels.serve(logits):
            logits = logits[:, : self.size]
            sums = kernels.log_sums(logits)
            _apply(logits, limits, start, stop, beams)
            return kernels.best(logits, sums, scores[start:stop], count)
        logs = self._normalize(logits)
        _apply(logs, limits, start, stop, beams)
        cells = logs.view(sentences, beams, self._depth, self._blocks)
        totals = scores[start:stop, :, None]  # (sentences, K, 1)
        tops = _no_nan(cells.amax(2) + totals)  # (sentences, K, blocks)
        _, index = tops.flatten(1).topk(min(count, tops[0].numel()), sorted=False)
        parent = index.div(self._blocks, rounding_mode="floor")  # (sentences, picked)
        block = index.fmod(self._blocks)
        sentence = torch.arange(sentences, device=logs.device)[:, None]
        picked = cells[sentence, parent, :, block] + scores[start:stop].gather(1, parent)[..., None]
        values, cell = _no_nan(picked.flatten(1)).topk(count)
        origin = cell.div(self._depth, rounding_mode="floor")
        entries = cell.fmod(self._depth) * self._blocks + block.gather(1, origin)
        # Padding of the last block is chosen only if no entry is possible.
        return values, entries.clamp_(max=self.size - 1), parent.gather(1, origin)

    def _multiply(self, features: Tensor) -> Tensor:
        """Logits (rows, padded V) of ``features`` (rows, E); the next call may overwrite them."""
        if self._int8 is None:
            features = features.to(self._weight.dtype)
            if one_dnn_is_faster() or features.device.type != "cpu":
                return linear(features, self._weight, self._bias)
        rows = features.size(0)
        if self._logits.size(0) < rows:
            self._logits = features.new_empty(rows, self._width)
        logits = self._logits[:rows]
        if self._int8 is not None:
            self._int8.multiply(features, logits[:, : self.size])
        elif self._bias is None:
            torch.mm(features, self._weight.t(), out=logits)
        else:
            torch.addmm(self._bias, features, self._weight.t(), out=logits)
        return logits

    def _normalize(self, logits: Tensor) -> Tensor:
        """Log-probabilities (rows, padded V) in float32 or better; may overwrite ``logits``."""
        logits[:, self.size :] = -math.inf  # padding of the last block
        dtype = at_least_float32(logits.dtype)
        if dtype != logits.dtype:
            return torch.log_softmax(logits, -1, dtype=dtype)
        return torch.log_softmax(logits, -1, out=logits)


def _no_nan(totals: Tensor) -> Tensor:
    """``totals`` with -inf for NaN, which ``topk`` would rank first; in place."""
    return totals.nan_to_num_(-math.inf, math.inf, -math.inf)


def _apply(logs: Tensor, limits: Limits, start: int, stop: int, beams: int) -> None:
    """Applies ``limits``, in fairseq's order, to ``logs`` of sentences ``start .. stop - 1``."""
    logs[:, limits.pad] = -math.inf
    if limits.unk_penalty:
        logs[:, limits.unk] -= limits.unk_penalty
    if limits.only is not None:
        allowed = logs[:, limits.only].clone()
        logs.fill_(-math.inf)
        logs[:, limits.only] = allowed
    if limits.forced is not None:
        forced = limits.forced[start:stop].repeat_interleave(beams)  # (rows,)
        bound = forced.ne(limits.pad).nonzero().squeeze(1)
        allowed = logs[bound, forced[bound]]
        logs[bound] = -math.inf
        logs[bound, forced[bound]] = allowed
    for entry in limits.forbidden:
        logs[:, entry] = -math.inf
    if limits.added is not None:
        entry, more = limits.added
        logs[:, entry] += more
    if limits.banned is not None:
        rows = slice(start * beams, stop * beams)
        logs[:, : limits.banned.size(1)].masked_fill_(limits.banned[rows], -math.inf)
