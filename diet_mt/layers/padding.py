"""Right-padded form: it lets a column be a position, and one bias serve a whole batch."""

from __future__ import annotations

from typing import NamedTuple, Optional

import torch
from torch import Tensor

from ..nn.compiled import may_read


class RightPadded(NamedTuple):
    """A batch whose real tokens stand first in every row.

    ``tokens``: (B, T). ``padding``: (B, T) bool, True at padding, or None where there is none.
    ``columns``: (B, T) for each new column the column it came from, or None where nothing moved.
    """

    tokens: Tensor
    padding: Optional[Tensor]
    columns: Optional[Tensor]

    def take(self, values: Tensor) -> Tensor:
        """``values`` (B, T, E), aligned with the batch as it came -> aligned with ``tokens``."""
        return values if self.columns is None else gather_columns(values, self.columns)

    def take_tokens(self, values: Tensor) -> Tensor:
        """``values`` (B, T), aligned with the batch as it came -> aligned with ``tokens``."""
        return values if self.columns is None else values.gather(1, self.columns)

    def restore(self, values: Tensor) -> Tensor:
        """``values`` (B, T, E), aligned with ``tokens`` -> aligned with the batch as it came."""
        return values if self.columns is None else gather_columns(values, self.columns.argsort(1))


def right_pad(tokens: Tensor, pad: int) -> RightPadded:
    """Moves padding behind the real tokens (B, T). fairseq pads sources on the left by default.

    On a CPU, a batch without padding, or with padding at the end, comes out unchanged. Elsewhere
    the padding is not looked at, and the tokens are always moved (``compiled.may_read``).
    """
    padding = tokens.eq(pad)
    if may_read(tokens):
        if not bool(padding.any()):
            return RightPadded(tokens, None, None)
        if not bool((padding[:, :-1] & ~padding[:, 1:]).any()):
            return RightPadded(tokens, padding, None)
    columns = padding.to(torch.uint8).argsort(dim=1, stable=True)
    return RightPadded(tokens.gather(1, columns), padding.gather(1, columns), columns)


def gather_columns(values: Tensor, columns: Tensor) -> Tensor:
    """``values`` (B, T, E), ``columns`` (B, T) -> (B, T, E) with ``values[b, columns[b, t]]``."""
    return values.gather(1, columns.unsqueeze(-1).expand(-1, -1, values.size(-1)))


def mask_of(padding: Optional[Tensor]) -> Optional[Tensor]:
    """``padding`` (B, S) -> the mask that attention takes, or None where nothing is padded.

    A row of padding alone is left open: with every key closed its softmax would be 0/0, and the NaN
    would reach the gradient of the whole batch. Nobody reads the output of such a row.
    """
    return None if padding is None else padding & ~padding.all(dim=1, keepdim=True)
