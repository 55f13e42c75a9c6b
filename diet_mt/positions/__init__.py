"""Position encodings by name. This is the only place where a name chooses a scheme."""

from __future__ import annotations

from typing import Dict, Optional, Type

from ..errors import UserError
from .base import SHARING, AttentionBias, AttentionShape, InputTerm, PositionEncoding
from .diet_abs import DietAbs
from .diet_rel import DietRel
from .learned import Learned
from .none import NoPositions
from .sinusoidal import Sinusoidal

NAMES: Dict[str, Type[PositionEncoding]] = {
    scheme.name: scheme for scheme in (NoPositions, Sinusoidal, Learned, DietAbs, DietRel)
}

__all__ = [
    "NAMES",
    "SHARING",
    "AttentionBias",
    "AttentionShape",
    "InputTerm",
    "PositionEncoding",
    "build_position",
]


def build_position(
    name: str, *, sharing: Optional[str] = None, rank: Optional[int] = None
) -> PositionEncoding:
    """The encoding called ``name`` with its options; None means the scheme's own default.

    Raises :class:`UserError` for an unknown name or options that the scheme cannot take.
    """
    if name not in NAMES:
        raise UserError(
            f"--position-encoding {name}: unknown; choose from {', '.join(sorted(NAMES))}"
        )
    return NAMES[name](sharing=sharing, rank=rank)
