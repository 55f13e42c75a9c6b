"""Position encodings by name; no other module maps names to encodings."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any

from ..system.errors import UserError
from .base import (
    CROSS,
    DECODER,
    ENCODER,
    KINDS,
    SHARING,
    AttentionBias,
    AttentionPositions,
    AttentionShape,
    InputPositions,
    PositionEncoding,
)
from .options import Option, options_of
from .position_ids import EXTRAPOLATIONS, REFUSE, PositionRange, RandomizedPositions, TokenPositions
from .segments import SEGMENT_ENCODINGS, SegmentInput, SegmentPositions
from .sites import EncodingAtSites
from .terms import PositionTerms

__all__ = [
    "AT_INPUT", "COMMAND_NAMES", "CROSS", "DECODER", "ENCODER", "EXTRAPOLATIONS", "KINDS", "NAMES",
    "OPTIONS", "REFUSE", "SEGMENT_ENCODINGS", "SHARING", "AttentionBias", "AttentionPositions",
    "AttentionShape", "InputPositions", "Option", "PositionEncoding", "PositionRange",
    "PositionTerms", "RandomizedPositions", "SegmentInput", "SegmentPositions", "TokenPositions",
    "build_position", "create",
]  # fmt: skip

# Module and class of every encoding.
REGISTRY = (
    "absolute.NoPositions",
    "absolute.Sinusoidal",
    "augmented.Shape",
    "augmented.Cape",
    "absolute.Learned",
    "absolute.Concat",
    "shaw.Shaw",
    "t5.T5",
    "tupe.TupeAbs",
    "tupe.TupeRel",
    "rotary.Rotary",
    "pope.Pope",
    "decay.Alibi",
    "decay.Kerple",
    "decay.Sandwich",
    "fire.Fire",
    "transformer_xl.TransformerXl",
    "deberta.Deberta",
    "diet.DietAbs",
    "diet.DietRel",
    "linformer.Linformer",
    "linformer.DietAbsLin",
)


NAMES: dict[str, type[PositionEncoding]] = {}
for _module, _class in (entry.split(".") for entry in REGISTRY):
    _encoding = getattr(import_module(f".{_module}", __name__), _class)
    NAMES[_encoding.name] = _encoding

# The options of all encodings, by field name.
OPTIONS: dict[str, Option] = {
    field: declared for encoding in NAMES.values() for field, declared in options_of(encoding)
}

# Names in the spelling of commands and architectures, such as diet_rel.
COMMAND_NAMES = tuple(name.replace("-", "_") for name in NAMES)
# Names of the encodings without positions inside attention.
AT_INPUT = tuple(name for name, encoding in NAMES.items() if not encoding.acts_in)


def create(
    name: str,
    *,
    heads: int,
    head_dim: int,
    max_length: int,
    max_keys: int | None = None,
    layers: int = 1,
    kind: str = ENCODER,
    extrapolation: str = REFUSE,
    **options: Any,
) -> AttentionPositions:
    """An encoding as a module for one kind of attention of any PyTorch model.

    ``name``: ``diet_rel`` or ``diet-rel``; ``max_length``: the largest number of queries, and by
    default also of keys, in tokens; ``options``: those of the encoding, by field (see ``OPTIONS``).
    The other arguments are fields of :class:`AttentionShape`.

    Raises :class:`UserError` for unknown names, invalid options, and a ``kind`` without positions.
    """
    if extrapolation not in EXTRAPOLATIONS:
        raise UserError(f"extrapolation={extrapolation}: choose from {', '.join(EXTRAPOLATIONS)}")
    encoding = _build("name", name.replace("_", "-"), sorted(NAMES), options)
    sizes = layers, heads, head_dim, max_length, max_keys or max_length
    positions = encoding.attention_positions(
        AttentionShape(*sizes, kind, extrapolation=extrapolation)
    )
    if positions is None:
        kinds = ", ".join(encoding.acts_in) or "none; it acts at the input (input_positions)"
        raise UserError(f"{name} has no positions in {kind} attention; its kinds: {kinds}")
    return positions


def build_position(
    name: str,
    kinds: str | None = None,
    at_input: str | None = None,
    randomized: int | None = None,
    layers: str | None = None,
    **options: Any,
) -> PositionEncoding:
    """The encoding ``name`` with its options by field (see ``OPTIONS``).

    ``kinds``: the kinds of attention in which it acts, separated by commas. ``at_input``: name of
    the encoding added to the embeddings; it gets the options that ``name`` does not have.
    ``randomized``: the number of positions from which training draws. ``layers``: those with
    positions inside attention, ``0:3,5`` or ``::2``. None, or False for an option, is the default:
    the encoding's own kinds, input and options, consecutive positions, all layers.

    Raises :class:`UserError` for an unknown name or invalid options.
    """
    of_input = {
        field: options.pop(field) for field in (_fields(at_input) - _fields(name)) & options.keys()
    }
    encoding = _build("--position-encoding", name, sorted(NAMES), options)
    if at_input == encoding.own_input:
        at_input = None
    chosen = encoding.acts_in if kinds is None else [kind.strip() for kind in kinds.split(",")]
    added = encoding
    if at_input is not None:
        added = _build("--position-input", at_input, AT_INPUT, of_input)
    at_sites = EncodingAtSites(
        inside=encoding,
        at_input=added,
        kinds=tuple(sorted(set(chosen), key=lambda kind: [*KINDS, kind].index(kind))),
        layers=":" if layers is None else layers.replace(" ", ""),
        randomized=randomized,
    )
    defaults = encoding.acts_in, encoding, ":", None
    is_default = (at_sites.kinds, added, at_sites.layers, randomized) == defaults
    return encoding if is_default else at_sites


def _build(
    flag: str, name: str, choices: Collection[str], options: dict[str, Any]
) -> PositionEncoding:
    if name not in NAMES:
        raise UserError(f"{flag} {name or '(empty)'}: unknown; choose from {', '.join(choices)}")
    given = {
        field: value for field, value in options.items() if value is not None and value is not False
    }
    if unknown := given.keys() - OPTIONS.keys():
        raise UserError(f"{', '.join(sorted(unknown))}: no option of an encoding")
    fields = _fields(name)
    problems = [
        f"{OPTIONS[field].flag}{'' if value is True else f' {value}'}: {name} has no such option; "
        f"leave it out (it belongs to {', '.join(defaults_of(field))})"
        for field, value in given.items()
        if field not in fields
    ]
    try:
        encoding = NAMES[name](**{key: value for key, value in given.items() if key in fields})
    except UserError as error:
        problems.insert(0, str(error))
    if problems:
        raise UserError("; ".join(problems))
    return encoding


def _fields(name: str | None) -> set[str]:
    """Field names of the options of an encoding; empty for an unknown ``name``."""
    return {field for field, _ in options_of(NAMES[name])} if name in NAMES else set()


def defaults_of(option: str) -> dict[str, Any]:
    """Default of the field ``option`` in each encoding that has it, by encoding name."""
    defaults = {}
    for name, encoding in sorted(NAMES.items()):
        sharing = option == "sharing"
        default = encoding.default_sharing if sharing else getattr(encoding, option, None)
        if option in _fields(name) and not (sharing and default is None):
            defaults[name] = default
    return defaults
