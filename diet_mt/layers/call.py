"""What a layer needs of one call, as one frozen object.

Positions, masks and the layer's part of a decoding run travel under their own names. They are no
tensors of fairseq's signatures, so nothing can take one for another, and a layer that is called
without them says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Protocol, Sequence, Tuple

from torch import Tensor

from ..positions import AttentionPositions, LayerPositions, Span
from ..positions.layer import NOTHING


class Cache(Protocol):
    """One attention module's part of a decoding run (``run.py``)."""

    def attend(self, query: Tensor, call: AttentionCall) -> Tuple[Tensor, Optional[Tensor]]:
        """``query`` (rows, E), one position -> what attention finds, (rows, H, 1, D), before the
        output projection, and where asked for its weights (rows, H, 1, S).
        """


@dataclass(frozen=True)
class AttentionCall:
    """One call of one attention module.

    ``positions``: what the encoding brings. ``padding``: (B', S), True at keys that nobody may look
    at, at least one of every row being open (see ``padding.mask_of``); or None. ``causal``: keys
    behind their query are closed. ``segments``: factors (B, H|1, T, N) and (B, 1, S, N) of a bias,
    or None. ``cache``: the module's part of a decoding run, or None. ``need_weights``: also return
    the attention weights.
    """

    positions: LayerPositions = NOTHING
    padding: Optional[Tensor] = None
    causal: bool = False
    segments: Optional[Tuple[Tensor, Tensor]] = None
    cache: Optional[Cache] = None
    need_weights: bool = False


@dataclass(frozen=True)
class DecoderCall:
    """One call of one decoder layer.

    ``source``: encoder output (S, B', E'), not read where ``encoder_attn`` has a cache.
    ``encoder_attn``: None in a decoder without cross-attention.
    """

    self_attn: AttentionCall
    encoder_attn: Optional[AttentionCall] = None
    source: Optional[Tensor] = None


def for_layers(
    positions: Optional[AttentionPositions], layers: int, queries: Span, keys: Span
) -> Sequence[LayerPositions]:
    """What each of ``layers`` layers gets from ``positions``, which may be None."""
    return [NOTHING] * layers if positions is None else positions.for_layers(queries, keys)


def need_call(call: Any, wanted: type, layer: object) -> None:
    """Raises TypeError where ``layer`` is called without the object that holds its positions."""
    if not isinstance(call, wanted):
        raise TypeError(
            f"{type(layer).__name__} takes {wanted.__name__} from its stack, not "
            f"{type(call).__name__}: called in fairseq's signature, it would compute without "
            "positions; call the encoder or decoder"
        )
