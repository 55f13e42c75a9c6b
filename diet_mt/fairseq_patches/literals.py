"""Options that are written as Python text are read as data, and never run.

fairseq passes strings such as ``--adam-betas`` and ``adaptive_softmax_cutoff`` to ``eval``, also
those of a checkpoint's configuration, so a checkpoint could run any code. Replaced: the name
``eval`` in each module of fairseq that uses it, by :func:`literal`.
"""

from __future__ import annotations

import ast
import importlib
import operator
from typing import Any, Callable, Dict, Type, Union

from ..errors import UserError, printable

# Every module of fairseq 0.12.2 and fairseq-fixed 0.12.3.1 that calls eval.
MODULES = (
    "fairseq.utils",
    "fairseq.criterions.ctc",
    "fairseq.data.audio.raw_audio_dataset",
    "fairseq.data.codedataset",
    "fairseq.models.fconv",
    "fairseq.models.fconv_lm",
    "fairseq.models.fconv_self_att",
    "fairseq.models.hubert.hubert",
    "fairseq.models.lightconv_lm",
    "fairseq.models.speech_to_text.s2t_wav_transformer",
    "fairseq.models.transformer_lm",
    "fairseq.models.wav2vec.wav2vec",
    "fairseq.models.wav2vec.wav2vec2",
    "fairseq.optim.adafactor",
    "fairseq.optim.adam",
    "fairseq.optim.adamax",
    "fairseq.optim.cpu_adam",
    "fairseq.optim.fused_lamb",
)

Number = Union[int, float, complex]
# fairseq's own defaults calculate: "[(512, 3)] * 20".
_OPERATORS: Dict[Type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_LONGEST = 10_000  # characters of an option, and items of its value


def literal(text: Any) -> Any:
    """The value of a Python literal, in which numbers and lists may be added and multiplied.

    Raises:
        UserError: it is anything else: a name, a call, an attribute; or too long.
    """
    if not isinstance(text, str):
        raise TypeError("an option must be a string")  # as eval; fairseq catches it
    try:
        if len(text) > _LONGEST:
            raise ValueError("too long")
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (ValueError, TypeError, SyntaxError, ArithmeticError, MemoryError, RecursionError):
        raise UserError(
            f"option {printable(text, 60)!r}: not a number, string, list or the like, and no code "
            "is run; if it comes from a checkpoint, do not trust that file"
        ) from None


def _value(node: ast.expr) -> Any:
    if not isinstance(node, ast.BinOp):
        return ast.literal_eval(node)
    if type(node.op) not in _OPERATORS:
        raise ValueError("not an operation of literals")
    left, right = _value(node.left), _value(node.right)
    if isinstance(node.op, ast.Mult):
        _bound(left, right)
    return _OPERATORS[type(node.op)](left, right)


def _bound(left: Any, right: Any) -> None:
    """Raises ValueError where a list or string would be repeated too often."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, (list, tuple, str, bytes)) and len(one) * other > _LONGEST:
            raise ValueError("too long")


for name in MODULES:
    vars(importlib.import_module(name))["eval"] = literal
