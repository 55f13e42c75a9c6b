"""The interface of every position encoding, and the meaning of every shape letter.

    B  sentences in the batch        T  queries (target positions)    L  layers of one stack
    H  attention heads               S  keys (source positions)       E  model width (paper: d)
    D  head size (paper: d_h)        n  longest position, in tokens   R  rank (paper: d_p)

Positions count real tokens: the first real token of a sentence is position 0. The stacks bring
every batch into right-padded form first, so column and position agree and one bias serves all
sentences. (With padding on the left, it would differ by sentence and cost B times as much.) An
encoding receives two position ranges (``position_ids.py``): of T queries, and of the first S tokens
as keys. In decoding step t, the queries are ``range(t, t + 1)``. The *distance* of query i and key
j is i - j.

An encoding can act at two sites:

- :meth:`PositionEncoding.input_positions`: added to the token embeddings, once per stack;
- :meth:`PositionEncoding.attention_positions`: inside attention, for one kind of attention of one
  stack. A bias of the logits that does not depend on the content is an :class:`AttentionBias` with
  one method; other encodings return a subclass of
  :class:`~diet_mt.positions.terms.PositionTerms`, with methods on queries, keys and values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn

from ..nn.precision import at_least_float32
from ..system.errors import UserError
from .options import option, options_of
from .position_ids import (
    REFUSE,
    PositionRange,
    TokenPositions,
    check_size,
    read_table,
    resized_table,
)
from .terms import NO_TERMS, PositionTerms

SHARING = ("none", "head-wise", "layer-wise")
# Standard deviation of learned tables that do not start at 0: BERT's (Devlin et al. 2018).
INIT_STD = 0.02

# The kinds of attention: self-attention of encoder and decoder, and cross-attention.
ENCODER, DECODER, CROSS = KINDS = ("encoder", "decoder", "cross")
SELF_ATTENTION = (ENCODER, DECODER)

Entry = TypeVar("Entry")
# ``score_mod`` of FlexAttention: a logit, its sentence, head, query and key -> the new logit.
ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
# Largest numbers of queries and keys, in tokens, of each kind of attention.
Lengths = Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class AttentionShape:
    """Sizes of one kind of attention in all layers of one stack.

    ``layers`` L; ``heads`` H; ``head_dim`` D; ``max_queries`` and ``max_keys`` in tokens; ``kind``:
    ``ENCODER``, ``DECODER`` (causal) or ``CROSS``. ``first_is_cls``: whether the token at position
    0 represents the whole sentence, as [CLS] in BERT. ``extrapolation``: the rule for sentences
    longer than the tables, one of ``EXTRAPOLATIONS``. ``skipped``: layers without positions, which
    the L of tables and terms excludes.
    """

    layers: int
    heads: int
    head_dim: int
    max_queries: int
    max_keys: int
    kind: str = ENCODER
    first_is_cls: bool = False
    extrapolation: str = REFUSE
    skipped: tuple[int, ...] = ()

    @property
    def embed_dim(self) -> int:
        """Model width E of the stack with the queries."""
        return self.heads * self.head_dim


def normal(size: Sequence[int], std: float = INIT_STD) -> Tensor:
    """Initial values of a table, normal with standard deviation ``std``."""
    return torch.empty(*size).normal_(std=std)


class Table(nn.Module):
    """Named parameters of one layer, given their initial values."""

    def __init__(self, **values: Tensor) -> None:
        super().__init__()
        for name, value in values.items():
            self.register_parameter(name, nn.Parameter(value))


class LayerTables(nn.Module):
    """Parameters for all L layers of one kind of attention.

    ``make_table(heads)``, or None without parameters, creates those of one layer. ``sharing``
    determines its calls (paper, section 4.4): ``none``, L times with H heads; ``head-wise``, L
    times with one head; ``layer-wise``, once with H heads. Tables of single layers are in a list
    named ``layers`` so that fairseq's layer pruning renumbers them together with their layers.
    """

    like: Tensor  # (0,), with the model's device and precision

    def __init__(
        self,
        shape: AttentionShape,
        sharing: str | None = None,
        make_table: Callable[[int], Table] | None = None,
    ) -> None:
        super().__init__()
        self.shape = shape
        self.sharing = sharing
        self.shared: Table | None = None
        self.layers = nn.ModuleList()
        # No buffers of computed values, such as angles: half precision would round them.
        self.register_buffer("like", torch.empty(0), persistent=False)
        heads = 1 if sharing == "head-wise" else shape.heads
        if make_table is not None and sharing == "layer-wise":
            self.shared = make_table(heads)
        elif make_table is not None:
            self.layers.extend(
                Table() if layer in shape.skipped else make_table(heads)
                for layer in range(shape.layers)
            )

    def tables(self) -> Sequence[nn.Module]:
        """The L tables, or the single one that all layers share."""
        if self.shared is not None:
            return [self.shared]
        return [table for n, table in enumerate(self.layers) if n not in self.shape.skipped]

    def per_layer(self, entries: list[Entry]) -> list[Entry]:
        """L entries: ``entries`` itself, or its single entry repeated for all layers."""
        count = self.shape.layers - len(self.shape.skipped)
        return entries * count if len(entries) == 1 else entries

    def stacked(self, name: str, at: PositionRange | None = None, *, zero: int = 0) -> Tensor:
        """The parameter ``name`` of all tables, (L|1, H|1, ...), at least in float32.

        ``at``: indices of rows (dimension 1 of a table), by default all; ``zero``: the row of
        position or distance 0.
        """
        tables = [getattr(table, name) for table in self.tables()]

        def rows(table: Tensor, dim: int) -> Tensor:
            if at is None:
                return table
            return read_table(table, at, self.shape.extrapolation, dim=dim, zero=zero)

        if len(tables) == 1:
            stack = rows(tables[0], 1).unsqueeze(0)
        elif torch.is_grad_enabled():  # one gradient for the rows of all tables
            stack = rows(torch.stack(tables), 2)
        else:  # no copies of whole tables
            stack = torch.stack([rows(table, 1) for table in tables])
        return stack.to(at_least_float32(stack.dtype))

    def resized(self, table: Tensor, own: Tensor, lengths: Lengths) -> Tensor:
        """``table``, a parameter of a model for other ``lengths``, in the size of ``own``.

        ``own``: the same parameter of this module, by default with a row per position. Raises
        :class:`UserError` if ``table`` is too short and the model does not extrapolate.
        """
        if table.shape == own.shape:
            return table
        return resized_table(table, own.size(-2), self.shape.extrapolation, dim=table.dim() - 2)

    def extra_repr(self) -> str:
        return f"{self.shape}, sharing={self.sharing}"


def projections(heads: int, shape: AttentionShape) -> Table:
    """Projections ``query`` and ``key`` of one layer for positions (n, E): (H|1, E, D) each."""
    size = heads, shape.embed_dim, shape.head_dim
    return Table(query=normal(size), key=normal(size))


class AttentionPositions(LayerTables, ABC):
    """The positional part of all L layers of one kind of attention."""

    # Whether tables limit positions, to max_queries and max_keys.
    limited: ClassVar[bool] = True
    # Factor of q k^T: D^-0.5, times ``content_scale`` of the encoding (TUPE, DeBERTa).
    scale: float
    # Attention modules of the layers with positions, whose projections an encoding may use.
    attention: Sequence[Any] = ()

    @property
    def refuses(self) -> bool:
        """Whether positions beyond the tables are an error."""
        return self.limited and self.shape.extrapolation == REFUSE

    def for_layers(self, queries: PositionRange, keys: PositionRange) -> list[PositionTerms]:
        """Terms of each layer for T queries over S keys, both checked by :meth:`check`."""
        self.check(queries, keys)
        terms = [*self.per_layer(self.terms(queries, keys))]
        for layer in sorted(self.shape.skipped):
            terms.insert(layer, NO_TERMS)
        return terms

    def check(self, queries: PositionRange, keys: PositionRange) -> None:
        """Raises :class:`UserError` beyond the tables, unless they are extrapolated."""
        if self.refuses:
            can_extrapolate = not self.shape.first_is_cls
            check_size(queries, self.shape.max_queries, can_extrapolate=can_extrapolate)
            check_size(keys, self.shape.max_keys, can_extrapolate=can_extrapolate)

    def score_mods(self, queries: PositionRange, keys: PositionRange) -> list[ScoreMod]:
        """A ``score_mod`` of FlexAttention for each of the L layers, with one value per distance.

        Raises NotImplementedError unless the encoding is a bias by distance.
        """
        raise NotImplementedError(f"{type(self).__name__} is not a bias by distance")

    @abstractmethod
    def terms(self, queries: PositionRange, keys: PositionRange) -> list[PositionTerms]:
        """Terms of the L layers at valid positions; a single entry if all layers share it."""

    def tabulate(self) -> None:
        """Replaces methods with look-ups in tables of all positions, for exported programs."""


class AttentionBias(AttentionPositions):
    """A bias of the logits that depends on positions alone."""

    @abstractmethod
    def forward(self, queries: PositionRange, keys: PositionRange) -> Tensor:
        """The bias (L|1, H|1, T, S) at valid positions, at least in float32; 1 if shared."""

    def terms(self, queries: PositionRange, keys: PositionRange) -> list[PositionTerms]:
        return [PositionTerms(bias) for bias in self(queries, keys).unbind(0)]


class InputPositions(nn.Module, ABC):
    """Vectors added to the token embeddings of one stack, one row per position.

    The stack sets ``extrapolation``, the rule for longer sentences, and ``can_extrapolate``,
    whether its model has the option ``--beyond-table``.
    """

    def __init__(self, max_positions: int, embed_dim: int) -> None:
        super().__init__()
        self.extrapolation = REFUSE
        self.can_extrapolate = True
        self.max_positions = max_positions
        self.embed_dim = embed_dim

    @abstractmethod
    def table(self) -> Tensor:
        """All rows, (n, E), with row i for position i."""

    def draw(self, std: float) -> None:
        """Redraws learned rows, normal with ``std``, like the token embeddings of the stack."""

    def resized(self, table: Tensor, own: Tensor, lengths: Lengths) -> Tensor:
        """As :meth:`LayerTables.resized`."""
        return resized_table(table, len(own), self.extrapolation)

    def of_fairseq(self, table: Tensor | None, first: int) -> dict[str, Tensor]:
        """State dict entries for the positions of fairseq's Transformer.

        ``table``: its table if learned, or None; ``first``: its row of the first token.
        """
        raise NotImplementedError

    def rows(self, at: PositionRange) -> Tensor:
        """Rows of these positions, (1, T, E).

        Raises :class:`UserError` beyond the table, unless it is extrapolated.
        """
        if self.extrapolation == REFUSE:
            check_size(at, self.max_positions, can_extrapolate=self.can_extrapolate)
        return read_table(self.table(), at, self.extrapolation).unsqueeze(0)

    def forward(self, tokens: Tensor, at: PositionRange) -> Tensor:
        """Rows of right-padded ``tokens`` (B, T): (1, T, E), or (B, T, E) if drawn per sentence."""
        return self.rows(at)

    def extra_repr(self) -> str:
        return f"max_positions={self.max_positions}, embed_dim={self.embed_dim}"


@dataclass(frozen=True)
class PositionEncoding:
    """An encoding with resolved options; ``NAMES`` of the package lists all encodings.

    The fields are its options (see ``options.py``). ``sharing``: one of ``SHARING``, or None for an
    encoding without parameters per head or layer. Raises :class:`UserError` for invalid options.
    """

    name: ClassVar[str]
    default_sharing: ClassVar[str | None] = None  # None: no parameters per head or layer
    content_scale: ClassVar[float] = 1.0  # additional factor of q . k in ``acts_in``
    acts_in: ClassVar[tuple[str, ...]] = KINDS  # kinds of attention
    fixed_input: ClassVar[bool] = False  # not learned, so token embeddings are scaled by sqrt(E)
    mixes_keys: ClassVar[bool] = False  # keys of the encoder are mixtures of tokens
    draws: ClassVar[bool] = False  # training draws positions by the encoding's own rule
    # Options that encoder-only architectures set, by field.
    sentence_preset: ClassVar[dict[str, Any]] = {}
    # In plots: "#rrggbb", by default from a hash of the name; and the place where positions enter:
    # input, logits, rotation, projected (keys) or none.
    color: ClassVar[str | None] = None
    family: ClassVar[str] = "logits"

    sharing: str | None = option(
        "--position-sharing", None, "sharing of the position tables", kind=str, choices=SHARING
    )

    def __post_init__(self) -> None:
        if self.sharing is None:
            object.__setattr__(self, "sharing", self.default_sharing)
        for name, declared in options_of(self):
            value = getattr(self, name)
            if declared.kind is float and type(value) is int:  # 2 equals 2.0
                object.__setattr__(self, name, float(value))
            elif isinstance(value, str):  # one word of the signature
                object.__setattr__(self, name, value.replace(" ", ""))
        if problems := list(self.problems()):
            raise UserError("; ".join(problems))

    def problems(self) -> Iterator[str]:
        """Error messages, one for each invalid option."""
        for name, declared in options_of(self):
            if problem := declared.problem(getattr(self, name)):
                yield problem
        if self.sharing in SHARING and self.default_sharing is None:
            flag = f"--position-sharing {self.sharing}"
            yield f"{flag}: {self.name} has no parameters per head or layer to share; leave it out"

    def content_scale_in(self, kind: str) -> float:
        """Additional factor of q . k in one ``kind`` of attention."""
        return self.content_scale if kind in self.acts_in else 1.0

    def skipped(self, layers: int) -> tuple[int, ...]:
        """Numbers, from 0, of the layers without positions inside attention."""
        return ()

    @property
    def own_input(self) -> str:
        """Name of the default encoding at the input."""
        return "none" if self.acts_in else self.name

    def token_dim(self, embed_dim: int) -> int:
        """Width of the token embeddings in a stack of width E."""
        return embed_dim

    def input_positions(self, max_positions: int, embed_dim: int) -> InputPositions | None:
        """The module for the input of a stack with up to n tokens and width E, or None."""
        return None

    def attention_positions(
        self, shape: AttentionShape, attention: Sequence[Any] = ()
    ) -> AttentionPositions | None:
        """The module for one kind of attention, or None if the encoding does not act there.

        ``attention``: the attention modules of all layers of a model. The factor ``content_scale``
        is removed from those of layers without positions.
        """
        if shape.kind not in self.acts_in:
            return None
        skipped = self.skipped(shape.layers)
        for number in skipped if attention else ():
            attention[number].scaling /= self.content_scale
        positions = self.in_attention(replace(shape, skipped=skipped))
        positions.scale = shape.head_dim**-0.5 * self.content_scale
        chosen = [module for n, module in enumerate(attention) if n not in skipped]
        positions.attention = tuple(chosen)  # a tuple, so that they are not its submodules
        return positions

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        """The module for a kind of attention in ``acts_in``."""
        raise NotImplementedError

    def token_positions(self, max_positions: int) -> TokenPositions:
        """Positions of the tokens of a stack, for sentences of up to n tokens."""
        return TokenPositions()

    def describe(self) -> str:
        """Name and resolved options, which determine the meaning of the weights."""
        values = {name.replace("_", "-"): getattr(self, name) for name, _ in options_of(self)}
        words = (f"{name}={value}" for name, value in values.items() if value is not None)
        return " ".join([self.name, *words])

    def continues(self) -> Iterator[str]:
        """Descriptions of encodings whose weights have the same meaning; its own first."""
        yield self.describe()
        if implied := {name: None for name, its in options_of(self) if its.implied}:
            yield replace(self, **implied).describe()
