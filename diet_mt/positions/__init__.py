"""Position encodings by name. This is the only place where a name chooses an encoding."""

from __future__ import annotations

from typing import Any, Dict, Optional, Set, Type

from ..errors import UserError
from .alibi import Alibi
from .base import (
    CROSS,
    DECODER,
    ENCODER,
    KINDS,
    SHARING,
    AttentionBias,
    AttentionPositions,
    AttentionShape,
    PositionEncoding,
)
from .beyond import BEYOND, REFUSE
from .cape import Cape
from .concat import Concat
from .deberta import Deberta
from .diet_abs import DietAbs
from .diet_abs_lin import DietAbsLin
from .diet_rel import DietRel
from .fire import Fire
from .input import InputPositions
from .kerple import Kerple
from .layer import LayerPositions
from .learned import Learned
from .linformer import Linformer
from .none import NoPositions
from .options import Option, options_of
from .placed import Placed
from .pope import Pope
from .rotary import Rotary
from .sandwich import Sandwich
from .segments import SEGMENT_ENCODINGS, SegmentInput, SegmentPositions
from .shape import Shape
from .shaw import Shaw
from .sinusoidal import Sinusoidal
from .spans import Span, TokenPositions
from .t5 import T5
from .tupe import TupeAbs, TupeRel

NAMES: Dict[str, Type[PositionEncoding]] = {
    encoding.name: encoding
    for encoding in (
        NoPositions,
        Sinusoidal,
        Shape,
        Cape,
        Learned,
        Concat,
        Shaw,
        T5,
        TupeAbs,
        TupeRel,
        Rotary,
        Pope,
        Alibi,
        Kerple,
        Sandwich,
        Fire,
        Deberta,
        DietAbs,
        DietRel,
        Linformer,
        DietAbsLin,
    )
}

# Those of all encodings, by field.
OPTIONS: Dict[str, Option] = {
    name: its for encoding in NAMES.values() for name, its in options_of(encoding)
}

# As commands and architectures spell them: diet_rel.
COMMAND_NAMES = tuple(name.replace("-", "_") for name in NAMES)
# Those that act at the input and nowhere else.
AT_INPUT = tuple(name for name, encoding in NAMES.items() if not encoding.acts_in)

__all__ = [
    "AT_INPUT",
    "BEYOND",
    "COMMAND_NAMES",
    "CROSS",
    "DECODER",
    "ENCODER",
    "KINDS",
    "NAMES",
    "OPTIONS",
    "REFUSE",
    "SEGMENT_ENCODINGS",
    "SHARING",
    "AttentionBias",
    "AttentionPositions",
    "AttentionShape",
    "InputPositions",
    "LayerPositions",
    "Option",
    "PositionEncoding",
    "SegmentInput",
    "SegmentPositions",
    "Span",
    "TokenPositions",
    "build_position",
]


def build_position(
    name: str,
    kinds: Optional[str] = None,
    at_input: Optional[str] = None,
    randomized: Optional[int] = None,
    **given: Any,
) -> PositionEncoding:
    """The encoding called ``name`` with its options by field (see ``OPTIONS``); None or False means
    the encoding's own default.

    ``kinds``: of attention to act in, separated by commas; ``at_input``: name of what is added to
    the embeddings, which gets the options that it takes and ``name`` does not. None: the encoding's
    own. ``randomized``: positions that training draws from.

    Raises :class:`UserError` for an unknown name or options that the encoding cannot take.
    """
    apart = _options_of(at_input) - _options_of(name)
    of_input = {key: given.pop(key) for key in apart & given.keys()}
    encoding = _build(name, given)
    if at_input == encoding.own_input:
        at_input = None
    if kinds is None and at_input is None and randomized is None:
        return encoding
    words = encoding.acts_in if kinds is None else [word.strip() for word in kinds.split(",")]
    placed = Placed(
        inside=encoding,
        at_input=encoding if at_input is None else _at_input(at_input, of_input),
        kinds=tuple(sorted(set(words), key=lambda word: [*KINDS, word].index(word))),
        randomized=randomized,
    )
    is_own = placed.kinds == encoding.acts_in and placed.at_input == encoding
    return encoding if is_own and randomized is None else placed


def _at_input(name: str, given: Dict[str, Any]) -> PositionEncoding:
    if name not in NAMES:
        given_name = name or "(empty)"
        raise UserError(
            f"--position-input {given_name}: unknown; choose from {', '.join(AT_INPUT)}"
        )
    return _build(name, given)


def _build(name: str, given: Dict[str, Any]) -> PositionEncoding:
    if name not in NAMES:
        raise UserError(
            f"--position-encoding {name}: unknown; choose from {', '.join(sorted(NAMES))}"
        )
    kind = NAMES[name]
    chosen = {
        key: value for key, value in given.items() if value is not None and value is not False
    }
    taken = _options_of(name)
    problems = [
        f"{OPTIONS[key].flag}{'' if value is True else f' {value}'}: {name} has no such option; "
        f"leave it out (it belongs to {', '.join(takers(key))})"
        for key, value in chosen.items()
        if key not in taken
    ]
    try:
        encoding = kind(**{key: value for key, value in chosen.items() if key in taken})
    except UserError as error:
        problems.insert(0, str(error))
    if problems:
        raise UserError("; ".join(problems))
    return encoding


def _options_of(name: Optional[str]) -> Set[str]:
    """The fields of an encoding that are options; none of one that is unknown."""
    return {field for field, _ in options_of(NAMES[name])} if name in NAMES else set()


def takers(option: str) -> Dict[str, Any]:
    """The encodings that take the option with the field name ``option``, and its default there."""
    found = {}
    for name, encoding in sorted(NAMES.items()):
        own = encoding.default_sharing if option == "sharing" else getattr(encoding, option, None)
        if option in _options_of(name) and (option != "sharing" or own is not None):
            found[name] = own
    return found
