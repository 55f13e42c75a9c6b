"""Signatures in the state dict, which identify the meaning of the weights.

Two encodings can have the same parameters and still compute different things, and two dictionaries
the same size; so a model carries the signatures of its positions, words and segments.
"""

from __future__ import annotations

import logging
import zlib
from typing import Any, Dict, Optional, Sequence

import torch
from torch import Tensor

from ..system.errors import UserError

logger = logging.getLogger(__name__)
# Parts of the names of tables of positions, and of those of segments with the --segment-encoding
# that makes them.
_POSITIONS = ("_positions.", ".segment_input.")
_SEGMENTS = {".segment_input.": "input", ".segment_positions.": "per-head"}
# Tells a checkpoint without segments from one that lost its tables.
SEGMENT_SIGNATURE = "segment_signature"


def signature_tensor(text: str) -> Tensor:
    """``text`` -> (len,) code points in float32, which survive whatever is done to weights.

    Exponential averaging (``--store-ema``) scales every entry of the state dict in place, which
    integers refuse; averaging checkpoints adds before it divides, which small integers overflow;
    half precision holds the code points of ASCII exactly.
    """
    return torch.tensor([float(ord(letter)) for letter in text])


def signature_text(values: Tensor) -> str:
    """Inverse of :func:`signature_tensor`."""
    return "".join(chr(round(code)) for code in values.tolist())


def take_positions(model: Any, state: Dict[str, Tensor], prefix: str) -> Dict[str, Tensor]:
    """Gives ``state``, that of a checkpoint, the signature of ``model``, which can go on with its
    weights. Returns the entries of the model by their names there, which begin with ``prefix``.
    """
    own = {f"{prefix}{key}": value for key, value in model.state_dict().items()}
    signature = f"{prefix}position_signature"
    _check_signature(state.get(signature), [model.signature, *model.continues])
    state[signature] = own[signature]
    for key, value in own.items():
        is_table = key in state and any(part in key for part in _POSITIONS)
        if is_table and state[key].shape != value.shape:
            raise UserError(
                f"the checkpoint's {key} is {tuple(state[key].shape)}, this model's "
                f"{tuple(value.shape)}; use the same --position-rank, --max-source-positions, "
                "--max-target-positions and --num-segments"
            )
    return own


def _check_signature(signature: Optional[Tensor], expected: Sequence[str]) -> None:
    """``expected``: of the model, then of others whose weights it can go on with."""
    if signature is None:
        raise UserError(
            "the checkpoint has no position signature: it was not trained with a diet_mt "
            "architecture, and its weights mean something else"
        )
    text = signature_text(signature)
    if text not in expected:
        raise UserError(
            f"the checkpoint was trained with positions '{text}', this model has '{expected[0]}'; "
            "use the same --position-*, --linformer-k and --attention-scale options, or another "
            "checkpoint"
        )


def dictionary_checksum(dictionary: Any) -> str:
    """CRC-32 of the entries of a fairseq dictionary in their order, in hexadecimal."""
    return f"{zlib.crc32(chr(10).join(dictionary.symbols).encode()):08x}"


def check_dictionary(signature: Optional[Tensor], expected: str) -> None:
    """Refuses a checkpoint of other words, even if as many; one without a signature is taken."""
    if signature is not None and signature_text(signature) != expected:
        raise UserError(
            "the checkpoint was trained with another dictionary, so its embeddings are of other "
            "words; prepare the data with the vocabulary of the pretraining"
        )


def segments_in(state: Dict[str, Tensor]) -> str:
    """The value of --segment-encoding that a state dict was made with."""
    options = (option for part, option in _SEGMENTS.items() if any(part in key for key in state))
    return next(options, "none")


def add_missing_segments(state: Dict[str, Tensor], own: Dict[str, Tensor]) -> None:
    """Puts segments at zero into ``state``, that of a checkpoint, where only ``own``, that of the
    model, has some. Other differences are refused.

    Chen et al. 2021, appendix A: the model first computes what it was pretrained to compute, and
    learns about segments while it is fine-tuned.
    """
    (entry,) = (key for key in own if key.endswith(SEGMENT_SIGNATURE))
    ours = signature_text(own[entry])
    theirs = signature_text(state[entry]) if entry in state else segments_in(state)
    state[entry] = signature_tensor(ours)
    if theirs == ours:
        return
    if theirs != "none":
        raise UserError(
            f"the checkpoint was trained with --segment-encoding {theirs}, this model has {ours}; "
            "use the same, or a checkpoint without segments"
        )
    for key, value in own.items():
        if any(part in key for part in _SEGMENTS):
            state[key] = torch.zeros_like(value)
    logger.info("the checkpoint has no segments: --segment-encoding %s starts at zero", ours)
