"""What a position encoding brings to the attention of one layer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Optional, Tuple, Union

from torch import Tensor

# The number of a query; or (1,), where it is on the device.
Row = Union[int, Tensor]


def at_row(x: Tensor, row: Row, dim: int) -> Tensor:
    """The one entry ``row`` of ``x`` along ``dim``, which stays."""
    return x.narrow(dim, row, 1) if isinstance(row, int) else x.index_select(dim, row)


def too_long(length: int, limit: int, *, may_go_on: bool) -> str:
    """Message for a sentence of ``length`` tokens where tables end at ``limit`` positions.

    ``may_go_on``: whether the model takes ``--beyond-table``.
    """
    beyond = ", or say by --beyond-table what stands for the others (clip, repeat)"
    return (
        f"a sentence of {length} tokens is longer than the {limit} positions that this model was "
        "built with; train with a larger --max-source-positions or --max-target-positions, or "
        f"filter such sentences{beyond if may_go_on else ''}"
    )


@dataclass(frozen=True)
class LayerPositions:
    """The positional part of one layer's attention, for some queries and keys.

    The base has a bias, which is all that positions independent of the words need. A subclass adds
    tensors as fields and overrides what it changes; attention calls the methods in the order in
    which they stand here. Masks are not its business.

    ``bias``: (H|1, T, S), added to the logits, or None.
    """

    # Whether keys and values are sums over tokens, so that no padding is left to be masked.
    mixes_keys: ClassVar[bool] = False

    bias: Optional[Tensor] = None

    def step(self, row: Row, keys: int) -> LayerPositions:
        """The part for query ``row`` of these alone, over the first ``keys`` keys."""
        if self.bias is None:
            return self
        return replace(self, bias=at_row(self.bias, row, 1)[:, :, :keys])

    def queries(self, q: Tensor) -> Tensor:
        """Projected queries (B, H, T, D) -> what meets the keys, (B, H, T, R): R is D, or any
        width that keys have as well.
        """
        return q

    def keys(self, k: Tensor, padding: Optional[Tensor]) -> Tensor:
        """Newly projected keys (B, H, S', D) -> what is cached, (B, H, S', R).

        S' are all keys, or in a decoding step those of the queries' positions. ``padding``: (B,
        S'), True at padding, or None.
        """
        return k

    def values(self, v: Tensor, padding: Optional[Tensor]) -> Tensor:
        """Newly projected values (B, H, S', D) -> what is cached; ``padding`` as for the keys."""
        return v

    def factors(self) -> Optional[Tuple[Tensor, Tensor]]:
        """(H|1, T, R) and (H|1, S, R), whose product is a further bias, or None."""
        return None

    def query_bias(self, q: Tensor, keys: int, scale: float) -> Optional[Tensor]:
        """A bias that depends on the queries (B, H, rows, R): (B, H, rows, S), or None.

        ``keys`` S; ``scale``: the factor of q k^T. Where T is 1, any number of rows may stand at
        that one position (the beams of a sentence).
        """
        return None

    @property
    def reads_keys(self) -> bool:
        """Whether there is a :meth:`key_bias`, for which a step needs the keys themselves."""
        return False

    def key_bias(
        self, k: Tensor, scale: float, key_positions: Optional[Tensor] = None
    ) -> Optional[Tensor]:
        """A bias that depends on the keys (B, H, S, R) as they are cached: (B, H, T, S), or None.

        ``scale``: the factor of q k^T. ``key_positions`` (B, S): where they are not 0 to S - 1 (T
        is 1 then).
        """
        return None

    @property
    def changes_output(self) -> bool:
        """Whether :meth:`output` adds anything, for which the weights must be written out."""
        return False

    def output(self, weights: Tensor) -> Optional[Tensor]:
        """What depends on the attention weights (B, H, rows, S) and is added to the output: (B, H,
        rows, D), or None.
        """
        return None


NOTHING = LayerPositions()
