"""Signatures in the state dict, which identify the meaning of the weights.

Two encodings can have parameters of the same shapes and still compute different things, and two
dictionaries can have the same size; so a model stores signatures of its positions, dictionary and
segments.

Weights of fairseq's own Transformer have no signature; they are loaded if their positions are those
of the model. A training with a new optimizer may change the lengths of tables, or replace all
positions (``--reset-positions``).
"""

from __future__ import annotations

import logging
import zlib
from typing import Any, Dict, Optional, Sequence, Set, Type

import torch
from fairseq.models import ARCH_MODEL_NAME_REGISTRY
from torch import Tensor

from ..positions import CROSS, DECODER, ENCODER, PositionEncoding
from ..positions.absolute import Learned, NoPositions, Sinusoidal
from ..system.errors import UserError
from ..system.options import flag

logger = logging.getLogger(__name__)
# Parts of the names of position tables; and those of segment tables, each with the value of
# --segment-encoding that creates them.
_POSITIONS = ("_positions.", ".segment_input.")
_SEGMENTS = {".segment_input.": "input", ".segment_positions.": "per-head"}
# Key, in the metadata of a state dict that was read from a checkpoint, of its model's options.
OPTIONS = "diet_mt.options"
# Options of fairseq's Transformer that change what weights of the same shapes compute.
_SAME = (
    *("activation_fn", "no_scale_embedding", "encoder_normalize_before"),
    *("decoder_normalize_before", "encoder_attention_heads", "decoder_attention_heads"),
)
_USE_THE_SAME = "use the same --position-*, --linformer-k and --attention-scale options"
_NEW_OPTIMIZER = "--finetune-from-model, or --restore-file with --reset-optimizer"
# Tells a checkpoint without segments from one that lost its tables.
SEGMENT_SIGNATURE = "segment_signature"


def signature_tensor(text: str) -> Tensor:
    """Code points of ``text``, (len,), in float32, which all operations on weights preserve.

    Exponential averaging (``--store-ema``) scales every entry of the state dict in place, which
    integers do not allow; averaging checkpoints sums before it divides, which small integers would
    overflow; half precision represents the code points of ASCII exactly.
    """
    return torch.tensor([float(ord(letter)) for letter in text])


def signature_text(values: Tensor) -> str:
    """Inverse of :func:`signature_tensor`."""
    return "".join(chr(round(code)) for code in values.tolist())


def adapt_positions(model: Any, state: Dict[str, Tensor], prefix: str) -> None:
    """Changes the positions in ``state``, the state dict of a checkpoint, to those of ``model``.

    Options of ``model`` and ``model.adapts`` allow it. Raises :class:`UserError` otherwise.
    """
    options: Dict[str, Any] = getattr(state, "_metadata", {}).get(OPTIONS, {})
    signature, expected = f"{prefix}position_signature", [model.signature, *model.continues]
    arch = options.get("_name") or options.get("arch")
    if signature not in state and ARCH_MODEL_NAME_REGISTRY.get(arch, arch) == "transformer":
        state[signature] = signature_tensor(_take_from_fairseq(model, state, prefix, options))
    if signature not in state:
        return
    theirs = signature_text(state[signature])
    if theirs in expected:
        _resize(model, state, prefix, options)
        return
    if not (model.adapts and model.cfg.reset_positions):
        raise UserError(
            f"{_difference(theirs, expected)}; {_USE_THE_SAME}, or --reset-positions to train "
            f"with its other weights ({_NEW_OPTIMIZER})"
        )
    for key in [key for key in state if key.startswith(prefix) and _is_of_positions(key)]:
        del state[key]
    for key, value in model.state_dict().items():
        if _is_of_positions(key) or key == "position_signature":
            state[prefix + key] = value
    logger.info("initialized positions '%s'; not loaded from checkpoint: '%s'", expected[0], theirs)


def _is_of_positions(key: str) -> bool:
    return any(part in key for part in _POSITIONS)


def _take_from_fairseq(
    model: Any, state: Dict[str, Tensor], prefix: str, options: Dict[str, Any]
) -> str:
    """The signature of the weights of fairseq's Transformer.

    Renames their positions to those of ``model`` if both signatures are equal. Raises
    :class:`UserError` for options that give the weights another meaning.
    """
    for name in _SAME:
        theirs, ours = options.get(name), getattr(model.cfg, name)
        if name in options and str(theirs or "") != str(ours or ""):
            raise UserError(
                f"the checkpoint was trained with {flag(name)} {theirs}, this model has {ours}; "
                "use the same"
            )
    stacks, tables = {"encoder": model.encoder, "decoder": model.decoder}, {}
    kinds: Set[Type[PositionEncoding]] = set()
    for side in stacks:
        parts = [f"{prefix}{side}.embed_positions.{part}" for part in ("weight", "weights")]
        tables[side], *_ = (state.pop(part, None) for part in parts)
        state.pop(f"{prefix}{side}.embed_positions._float_tensor", None)
        kinds.add(Sinusoidal if tables[side] is None else Learned)
    if options.get("no_token_positional_embeddings"):
        kinds = {NoPositions}
    texts = sorted(kind().describe() for kind in kinds)
    signature = f"{'/'.join(texts)} scale=head"
    if signature == model.signature:
        for side, stack in stacks.items():
            if stack.embed_positions is not None:
                first = stack.padding_idx + 1  # fairseq's row of the first token
                taken = stack.embed_positions.of_fairseq(tables[side], first)
                for key, value in taken.items():
                    state[f"{prefix}{side}.embed_positions.{key}"] = value
    return signature


def _resize(model: Any, state: Dict[str, Tensor], prefix: str, options: Dict[str, Any]) -> None:
    """Cuts or extends tables of a checkpoint for other maximum lengths than those of ``model``.

    Raises :class:`UserError` if that changes a table and ``model.adapts`` is not set.
    """
    cfg = model.cfg
    sides = ("max_source_positions", "max_target_positions")
    sources, targets = before = tuple(options.get(side) for side in sides)
    after = tuple(getattr(cfg, side) for side in sides)
    if before == after or {type(sources), type(targets)} != {int}:
        return
    lengths = {ENCODER: (sources, sources), DECODER: (targets, targets), CROSS: (targets, sources)}
    changed = cfg.position_randomized is not None  # the sample of positions in evaluation
    for key, own in model.state_dict().items():
        table = state.get(prefix + key)
        if table is None or not _is_of_positions(key):
            continue
        differs = table.shape != own.shape
        if model.adapts or not differs:
            resized = _owner(model, key).resized(table, own, lengths)
            differs = resized.shape != table.shape or not torch.equal(resized, table)
        if differs and not model.adapts:
            raise UserError(
                "the checkpoint was trained with --max-source-positions {} and "
                "--max-target-positions {}, this model has {} and {}; use the same: only a "
                "training with a new optimizer cuts or extends tables ({})".format(
                    *before, *after, _NEW_OPTIMIZER
                )
            )
        if differs:
            state[prefix + key], changed = resized, True
    if changed and model.adapts:
        logger.info(
            "positions of %s source and %s target tokens become those of %s and %s: %s",
            *(*before, *after),
            "tables are cut, or extended (--beyond-table; by distance, their ends are repeated)"
            if cfg.position_randomized is None
            else "evaluation has another sample of --position-randomized",
        )


def _owner(model: Any, key: str) -> Any:
    """The module that resizes the parameter ``key``: the innermost one with ``resized``."""
    path = key.split(".")[:-1]
    while not hasattr(model.get_submodule(".".join(path)), "resized"):
        path.pop()
    return model.get_submodule(".".join(path))


def take_positions(model: Any, state: Dict[str, Tensor], prefix: str) -> Dict[str, Tensor]:
    """Checks the signature and tables in ``state``, the state dict of a checkpoint, and replaces
    the signature with that of ``model``.

    Returns the model's own entries by their names in ``state``, which begin with ``prefix``. Raises
    :class:`UserError` for weights that mean something else.
    """
    own = {f"{prefix}{key}": value for key, value in model.state_dict().items()}
    _check_shared(model, state, prefix)
    signature = f"{prefix}position_signature"
    _check_signature(state.get(signature), [model.signature, *model.continues])
    state[signature] = own[signature]
    for key, value in own.items():
        if key in state and _is_of_positions(key) and state[key].shape != value.shape:
            raise UserError(
                f"the checkpoint's {key} is {tuple(state[key].shape)}, this model's "
                f"{tuple(value.shape)}; use the same --position-rank, --max-source-positions, "
                "--max-target-positions and --num-segments"
            )
    return own


def _check_shared(model: Any, state: Dict[str, Tensor], prefix: str) -> None:
    """Raises UserError if entries differ that are one parameter of ``model``."""
    first: Dict[int, str] = {}
    for key, parameter in model.state_dict(keep_vars=True).items():
        names = f"{prefix}{first.setdefault(id(parameter), key)}", f"{prefix}{key}"
        if state.keys() >= set(names) and not torch.equal(*map(state.__getitem__, names)):
            raise UserError(
                "{} and {} differ in the checkpoint, and are one parameter of this model; share "
                "embeddings as in its training (--share-*)".format(*names)
            )


def _check_signature(signature: Optional[Tensor], expected: Sequence[str]) -> None:
    """``expected``: the signature of the model, then others whose weights mean the same."""
    if signature is None:
        raise UserError(
            "the checkpoint has no position signature: it was not trained with a diet_mt "
            "architecture, so its weights have another meaning"
        )
    text = signature_text(signature)
    if text not in expected:
        raise UserError(f"{_difference(text, expected)}; {_USE_THE_SAME}, or another checkpoint")


def _difference(theirs: str, expected: Sequence[str]) -> str:
    return f"the checkpoint was trained with positions '{theirs}', this model has '{expected[0]}'"


def dictionary_checksum(dictionary: Any) -> str:
    """CRC-32 of the symbols of a fairseq dictionary in their order, 8 hexadecimal digits."""
    return f"{zlib.crc32(chr(10).join(dictionary.symbols).encode()):08x}"


def check_dictionary(signature: Optional[Tensor], expected: str) -> None:
    """Raises UserError for a checkpoint with another dictionary, even of the same size.

    A checkpoint without a signature is accepted.
    """
    if signature is not None and signature_text(signature) != expected:
        raise UserError(
            "the checkpoint was trained with another dictionary, so its embeddings are of other "
            "words; prepare the data with the vocabulary of the pretraining"
        )


def segments_in(state: Dict[str, Tensor]) -> str:
    """``--segment-encoding`` of the model of a state dict without a signature of segments."""
    options = (option for part, option in _SEGMENTS.items() if any(part in key for key in state))
    return next(options, "none")


def add_missing_segments(state: Dict[str, Tensor], own: Dict[str, Tensor]) -> None:
    """Adds segment tables of zeros to ``state``, the state dict of a checkpoint without segments.

    Chen et al. 2021, appendix A: the model first computes what it was pretrained to compute, and
    learns about segments while it is fine-tuned.

    Args:
        state: entries of the checkpoint, changed in place.
        own: entries of the model by the same names.

    Raises :class:`UserError` for a checkpoint with another segment encoding.
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
