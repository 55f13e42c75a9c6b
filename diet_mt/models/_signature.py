"""A readable signature of the position encoding inside the checkpoint."""

from __future__ import annotations

import zlib
from typing import Any, Dict, Optional, Sequence

import torch
from torch import Tensor

from ..errors import UserError

# Parts of the names of tables.
_TABLES = ("_positions.", ".segment_input.")


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


def take_positions(model: Any, found: Dict[str, Tensor], prefix: str) -> Dict[str, Tensor]:
    """Gives ``found``, a checkpoint, the signature of ``model``, which can go on with its weights.
    Returns the entries of the model by the names that they have there, which begin with ``prefix``.

    Raises :class:`UserError` for weights of another encoding or of other table sizes.
    """
    own = {f"{prefix}{key}": value for key, value in model.state_dict().items()}
    signature = f"{prefix}position_signature"
    _check_signature(found.get(signature), [model.signature, *model.continues])
    found[signature] = own[signature]
    _check_table_shapes(found, own)
    return own


def _check_signature(found: Optional[Tensor], expected: Sequence[str]) -> None:
    """Raises :class:`UserError` where a checkpoint's signature is missing or not ``expected``: that
    of the model, or one of those behind it, whose weights it can go on with.
    """
    if found is None:
        raise UserError(
            "the checkpoint has no position signature: it was not trained with a diet_mt "
            "architecture, and its weights mean something else"
        )
    text = signature_text(found)
    if text not in expected:
        raise UserError(
            f"the checkpoint was trained with positions '{text}', this model has '{expected[0]}'; "
            "use the same --position-*, --linformer-k and --attention-scale options, or another "
            "checkpoint"
        )


def dictionary_checksum(dictionary: Any) -> str:
    """CRC-32 of the entries of a fairseq dictionary in their order, in hexadecimal."""
    return f"{zlib.crc32(chr(10).join(dictionary.symbols).encode()):08x}"


def check_dictionary(found: Optional[Tensor], expected: str) -> None:
    """Raises :class:`UserError` where a checkpoint was trained with other words than ``expected``,
    a checksum, even if as many. Checkpoints without one are taken as they are.
    """
    if found is not None and signature_text(found) != expected:
        raise UserError(
            "the checkpoint was trained with another dictionary, so its embeddings are of other "
            "words; prepare the data with the vocabulary of the pretraining"
        )


def _check_table_shapes(found: Dict[str, Tensor], own: Dict[str, Tensor]) -> None:
    """Raises :class:`UserError` where a position table of ``found`` has another shape than ours."""
    for key in own:
        table = key in found and any(part in key for part in _TABLES)
        if table and found[key].shape != own[key].shape:
            raise UserError(
                f"the checkpoint's {key} is {tuple(found[key].shape)}, this model's "
                f"{tuple(own[key].shape)}; use the same --position-rank, --max-source-positions, "
                "--max-target-positions and --num-segments"
            )
