"""Segments for a checkpoint that was pretrained without them."""

from __future__ import annotations

import logging
from typing import Dict

import torch
from torch import Tensor

from ..errors import UserError
from ._signature import signature_tensor, signature_text

logger = logging.getLogger(__name__)

# Where segments stand in a state dict, and the option that puts them there.
_PLACES = {".segment_input.": "input", ".segment_positions.": "per-head"}
# The entry of a state dict that says so, too: tables that are lost are not tables that never were.
SEGMENT_SIGNATURE = "segment_signature"


def segments_in(state: Dict[str, Tensor]) -> str:
    """The value of --segment-encoding that a state dict was made with."""
    for key in state:
        for part, encoding in _PLACES.items():
            if part in key:
                return encoding
    return "none"


def add_missing_segments(found: Dict[str, Tensor], own: Dict[str, Tensor]) -> None:
    """Puts segments at zero into ``found``, a checkpoint, where only ``own``, the model, has some.

    Chen et al. 2021, appendix A: the model first computes what it was pretrained to compute, and
    learns about segments while it is fine-tuned. Raises :class:`UserError` where both have
    segments, of different kinds, or only the checkpoint has.
    """
    (entry,) = (key for key in own if key.endswith(SEGMENT_SIGNATURE))
    ours = signature_text(own[entry])
    theirs = signature_text(found[entry]) if entry in found else segments_in(found)
    found[entry] = signature_tensor(ours)
    if theirs == ours:
        return
    if theirs != "none":
        raise UserError(
            f"the checkpoint was trained with --segment-encoding {theirs}, this model has {ours}; "
            "use the same, or a checkpoint without segments"
        )
    for key, value in own.items():
        if any(part in key for part in _PLACES):
            found[key] = torch.zeros_like(value)
    logger.info("the checkpoint has no segments: --segment-encoding %s starts at zero", ours)
