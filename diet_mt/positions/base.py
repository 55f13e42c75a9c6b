"""The interface of every position encoding, and the meaning of every shape letter.

    B  sentences in the batch        T  queries (target positions)    L  layers of one stack
    H  attention heads               S  keys (source positions)       E  model width (paper: d)
    D  head size (paper: d_h)        n  longest position, in tokens   R  rank (paper: d_p)

Positions count real tokens: the first real token of a sentence is position 0. The stacks bring
every batch into right-padded form first, so column and position agree and one bias serves all
sentences. (With padding on the left it would differ by row and cost B times more.) An encoding gets
two position ranges (``position_ids.py``): those of T queries, and those of the first S tokens as
keys. Decoding step t has the queries ``range(t, t + 1)``. The *distance* of query i and key j is
i - j.

An encoding can act at two sites:

- :meth:`PositionEncoding.input_positions`: added to the token embeddings, once per stack;
- :meth:`PositionEncoding.attention_positions`: inside attention, for one kind of attention of one
  stack. A bias of the logits that does not depend on the content is an :class:`AttentionBias` with
  one method; all others return :class:`~diet_mt.positions.terms.PositionTerms` of their own, which
  work on queries, keys and values.
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

# The kinds of attention: self-attention of either stack, and that of the decoder over the encoder.
ENCODER, DECODER, CROSS = KINDS = ("encoder", "decoder", "cross")
SELF_ATTENTION = (ENCODER, DECODER)

Entry = TypeVar("Entry")
# Of FlexAttention: the logit and the indices of sentence, head, query and key -> the logit.
ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
# The longest queries and keys of each kind of attention, in tokens.
Lengths = Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class AttentionShape:
    """Sizes and kind of one attention of one stack.

    ``layers`` L; ``heads`` H; ``head_dim`` D; ``max_queries`` and ``max_keys`` in tokens; ``kind``
    is ``ENCODER``, ``DECODER`` (causal) or ``CROSS``. ``first_is_cls``: the token at position 0
    represents the whole sentence, as [CLS] does in BERT. ``extrapolation``: the rule for sentences
    longer than the tables, one of ``EXTRAPOLATIONS``. ``skipped``: layers without positions;
    the L of tables and terms counts the others.
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
        """E of the stack of the queries."""
        return self.heads * self.head_dim


def normal(size: Sequence[int], std: float = INIT_STD) -> Tensor:
    """Initial values of a table."""
    return torch.empty(*size).normal_(std=std)


class Table(nn.Module):
    """Named parameters of one layer, from their initial values."""

    def __init__(self, **values: Tensor) -> None:
        super().__init__()
        for name, value in values.items():
            self.register_parameter(name, nn.Parameter(value))


class LayerTables(nn.Module):
    """Parameters for all L layers of one kind of attention.

    ``make_table(heads)`` builds those of one layer, if there are any. Sharing decides how often it
    is called and with how many heads (paper, section 4.4): ``none`` L times with H heads,
    ``head-wise`` L times with one, ``layer-wise`` once with H. Tables of single layers are in a
    list named ``layers`` so that fairseq's layer pruning renumbers them together with their layers.
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
        # Formulas are evaluated when used, since half precision would round a buffer.
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
        """L entries, from one per layer or a single one that all layers share."""
        count = self.shape.layers - len(self.shape.skipped)
        return entries * count if len(entries) == 1 else entries

    def stacked(self, name: str, at: PositionRange | None = None, *, zero: int = 0) -> Tensor:
        """The parameter ``name`` of every table, all rows (along dimension 1) or those ``at`` these
        indices: (L|1, H|1, ...). ``zero``: the row of position or distance 0.

        In float32 or better, also in a model of half precision.
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
        """``table``, a parameter of a model for other ``lengths``, in the size of ``own``, the same
        parameter of this module. By default rows are positions.
        """
        if table.shape == own.shape:
            return table
        return resized_table(table, own.size(-2), self.shape.extrapolation, dim=table.dim() - 2)

    def extra_repr(self) -> str:
        return f"{self.shape}, sharing={self.sharing}"


def projections(heads: int, shape: AttentionShape) -> Table:
    """``query`` and ``key`` of one layer, from positions (n, E): (H|1, E, D) each."""
    size = heads, shape.embed_dim, shape.head_dim
    return Table(query=normal(size), key=normal(size))


class AttentionPositions(LayerTables, ABC):
    """The positional part of all L layers of one kind of attention."""

    # Whether there are tables that end, at max_queries and max_keys.
    limited: ClassVar[bool] = True
    # Factor of q k^T: D^-0.5, times the factor of the encoding (TUPE, DeBERTa).
    scale: float
    # The attention modules of the L layers in a model, whose projections positions may use.
    attention: Sequence[Any] = ()

    @property
    def refuses(self) -> bool:
        """Whether positions beyond the tables are an error."""
        return self.limited and self.shape.extrapolation == REFUSE

    def for_layers(self, queries: PositionRange, keys: PositionRange) -> list[PositionTerms]:
        """The terms of each layer, for T queries over S keys."""
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
        """The bias of each of the L layers as a ``score_mod`` of FlexAttention, with a number for
        each distance in place of each query and key; of a bias by distance only.
        """
        raise NotImplementedError(f"{type(self).__name__} is not a bias by distance")

    @abstractmethod
    def terms(self, queries: PositionRange, keys: PositionRange) -> list[PositionTerms]:
        """:meth:`for_layers` of valid positions; a single entry where all layers share it."""


class AttentionBias(AttentionPositions):
    """A bias of the logits that depends on positions alone."""

    @abstractmethod
    def forward(self, queries: PositionRange, keys: PositionRange) -> Tensor:
        """(L|1, H|1, T, S) in float32 or better, for valid positions; 1 where layers or heads share
        the bias.
        """

    def terms(self, queries: PositionRange, keys: PositionRange) -> list[PositionTerms]:
        return [PositionTerms(bias) for bias in self(queries, keys).unbind(0)]


class InputPositions(nn.Module, ABC):
    """Vectors added to the token embeddings of one stack, a row for each position.

    The stack sets ``extrapolation``, the rule for longer sentences, and ``can_extrapolate``,
    whether its model has an option for it.
    """

    def __init__(self, max_positions: int, embed_dim: int) -> None:
        super().__init__()
        self.extrapolation = REFUSE
        self.can_extrapolate = True
        self.max_positions = max_positions
        self.embed_dim = embed_dim

    @abstractmethod
    def table(self) -> Tensor:
        """(n, E), row i for position i."""

    def draw(self, std: float) -> None:
        """Redraws learned rows, normal with ``std``, as the stack's token embeddings are."""

    def resized(self, table: Tensor, own: Tensor, lengths: Lengths) -> Tensor:
        """As :meth:`LayerTables.resized`."""
        return resized_table(table, len(own), self.extrapolation)

    def of_fairseq(self, table: Tensor | None, first: int) -> dict[str, Tensor]:
        """Entries of the state dict with the positions of fairseq's Transformer, where those of the
        first token are row ``first`` of its ``table``, if they are learned.
        """
        raise NotImplementedError

    def rows(self, at: PositionRange) -> Tensor:
        """Rows of these positions: (1, T, E).

        Raises :class:`UserError` beyond the table, unless it is extrapolated.
        """
        if self.extrapolation == REFUSE:
            check_size(at, self.max_positions, can_extrapolate=self.can_extrapolate)
        return read_table(self.table(), at, self.extrapolation).unsqueeze(0)

    def forward(self, tokens: Tensor, at: PositionRange) -> Tensor:
        """``tokens`` (B, T), right-padded, at these positions -> (B|1, T, E): B where training
        draws positions for every sentence.
        """
        return self.rows(at)

    def extra_repr(self) -> str:
        return f"max_positions={self.max_positions}, embed_dim={self.embed_dim}"


@dataclass(frozen=True)
class PositionEncoding:
    """An encoding with its options resolved; ``NAMES`` of the package lists all of them.

    The fields are its options (see ``options.py``). ``sharing``: one of ``SHARING``, or None for an
    encoding without parameters per head or layer. Raises :class:`UserError` for invalid options.
    """

    name: ClassVar[str]
    default_sharing: ClassVar[str | None] = None  # None: no parameters per head or layer
    content_scale: ClassVar[float] = 1.0  # further factor of q . k where it acts
    acts_in: ClassVar[tuple[str, ...]] = KINDS  # of attention
    fixed_input: ClassVar[bool] = False  # input vectors are not learned, so they cannot shrink
    mixes_keys: ClassVar[bool] = False  # keys of the encoder are mixtures of tokens
    draws: ClassVar[bool] = False  # training draws random positions by a rule of its own
    # Options that encoder-only architectures set, by field.
    sentence_preset: ClassVar[dict[str, Any]] = {}
    # In plots: "#rrggbb", by default chosen by a hash of the name; and where positions enter:
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
        """A sentence for each invalid option."""
        for name, declared in options_of(self):
            if problem := declared.problem(getattr(self, name)):
                yield problem
        if self.sharing in SHARING and self.default_sharing is None:
            flag = f"--position-sharing {self.sharing}"
            yield f"{flag}: {self.name} has no parameters per head or layer to share; leave it out"

    def content_scale_in(self, kind: str) -> float:
        """Further factor of q . k in one kind of attention."""
        return self.content_scale if kind in self.acts_in else 1.0

    def skipped(self, layers: int) -> tuple[int, ...]:
        """Layers without positions in a stack of so many."""
        return ()

    @property
    def own_input(self) -> str:
        """Name of the encoding that it has at the input by default."""
        return "none" if self.acts_in else self.name

    def token_dim(self, embed_dim: int) -> int:
        """Width of the token embeddings in a stack of width E."""
        return embed_dim

    def input_positions(self, max_positions: int, embed_dim: int) -> InputPositions | None:
        """What is added to the embeddings (n, E) of a stack, or None."""
        return None

    def attention_positions(
        self, shape: AttentionShape, attention: Sequence[Any] = ()
    ) -> AttentionPositions | None:
        """The module for one kind of attention, or None where it does not act; ``attention``: see
        :class:`AttentionPositions`. Those of layers without positions lose the factor of q . k.
        """
        if shape.kind not in self.acts_in:
            return None
        skipped = self.skipped(shape.layers)
        for number in skipped if attention else ():
            attention[number].scaling /= self.content_scale
        positions = self.in_attention(replace(shape, skipped=skipped))
        positions.scale = shape.head_dim**-0.5 * self.content_scale
        own = [module for n, module in enumerate(attention) if n not in skipped]
        positions.attention = tuple(own)  # not among its own submodules
        return positions

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        """The module for a kind of attention in ``acts_in``."""
        raise NotImplementedError

    def token_positions(self, max_positions: int) -> TokenPositions:
        """The positions of the tokens of a stack, for sentences of up to n tokens."""
        return TokenPositions()

    def describe(self) -> str:
        """Name and resolved options: everything that the meaning of the weights depends on."""
        values = {name.replace("_", "-"): getattr(self, name) for name, _ in options_of(self)}
        words = (f"{name}={value}" for name, value in values.items() if value is not None)
        return " ".join([self.name, *words])

    def continues(self) -> Iterator[str]:
        """Descriptions of encodings whose weights have the same meaning; its own first."""
        yield self.describe()
        if implied := {name: None for name, its in options_of(self) if its.implied}:
            yield replace(self, **implied).describe()
