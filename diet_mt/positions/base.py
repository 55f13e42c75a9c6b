"""The one interface of every position encoding, and the meaning of every shape letter.

    B  sentences in the batch        T  queries (target positions)    L  layers of one stack
    H  attention heads               S  keys (source positions)       E  model width (paper: d)
    D  head size (paper: d_h)        n  longest position, in tokens   R  rank (paper: d_p)

Positions count real tokens: the first real token of a sentence is position 0. The stacks bring
every batch into right-padded form before they ask an encoding, so column and position agree, and
the answer is the same for all sentences. (With padding on the left it would differ from row to row
and cost B times more.) Two spans say what is asked (``spans.py``): the positions of T queries, and
of the first S tokens as keys, each a range or, where they are randomized, a tensor. Decoding step t
asks for the queries ``range(t, t + 1)``. The *distance* of query i and key j is i - j.

An encoding can act at two places, and says so by what it builds:

- :meth:`PositionEncoding.input_positions`: added to the token embeddings, once per stack;
- :meth:`PositionEncoding.attention_positions`: inside attention, for one kind of attention of one
  stack. Where that is a bias of the logits that does not depend on the words, it is an
  :class:`AttentionBias`, and one method says all. What depends on them brings a
  :class:`~diet_mt.positions.layer.LayerPositions` of its own, which works on queries, keys and
  values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import (
    Any,
    Callable,
    ClassVar,
    Dict,
    Iterator,
    List,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
)

import torch
from torch import Tensor, nn

from ..errors import UserError
from ..nn.precision import at_least_float32 as at_least_float32
from ..nn.precision import no_autocast as no_autocast
from .beyond import REFUSE, read
from .input import InputPositions
from .layer import LayerPositions
from .options import option, options_of
from .spans import Span, TokenPositions, need_positions

SHARING = ("none", "head-wise", "layer-wise")
# Standard deviation of learned tables that do not start at 0: BERT's (Devlin et al. 2018).
INIT_STD = 0.02

Made = TypeVar("Made")  # what a layer gets

# The kinds of attention: self-attention of either stack, and that of the decoder over the encoder.
ENCODER, DECODER, CROSS = KINDS = ("encoder", "decoder", "cross")


@dataclass(frozen=True)
class AttentionShape:
    """One kind of attention in one stack: everything that an encoding needs to know of it.

    ``layers`` L; ``heads`` H; ``head_dim`` D; ``max_queries`` and ``max_keys`` in tokens; ``kind``
    is ``ENCODER``, ``DECODER`` (causal) or ``CROSS``. ``first_is_cls``: the token at position 0
    stands for the whole sentence, as [CLS] does in BERT. ``beyond``: what tables say of sentences
    that are longer (see ``beyond.py``).
    """

    layers: int
    heads: int
    head_dim: int
    max_queries: int
    max_keys: int
    kind: str = ENCODER
    first_is_cls: bool = False
    beyond: str = REFUSE

    @property
    def embed_dim(self) -> int:
        """E of the stack whose queries these are."""
        return self.heads * self.head_dim


class LayerTables(nn.Module):
    """Parameters for all L layers of one kind of attention.

    ``make_table(heads)`` builds those of one layer, where there are any. Sharing decides how often
    it is called and with how many heads (paper, section 4.4): ``none`` L times with H heads,
    ``head-wise`` L times with one, ``layer-wise`` once with H. Tables of single layers live in a
    list named ``layers`` so that fairseq's layer pruning renumbers them together with the layers
    they belong to.
    """

    like: Tensor  # (0,), where the model is, and how precise

    def __init__(
        self,
        shape: AttentionShape,
        sharing: Optional[str] = None,
        make_table: Optional[Callable[[int], nn.Module]] = None,
    ) -> None:
        super().__init__()
        self.shape = shape
        self.sharing = sharing
        self.shared: Optional[nn.Module] = None
        self.layers = nn.ModuleList()
        # What a formula gives is no buffer: half precision would round it.
        self.register_buffer("like", torch.empty(0), persistent=False)
        heads = 1 if sharing == "head-wise" else shape.heads
        if make_table is not None and sharing == "layer-wise":
            self.shared = make_table(heads)
        elif make_table is not None:
            self.layers.extend(make_table(heads) for _ in range(shape.layers))

    def tables(self) -> Sequence[nn.Module]:
        """The L tables, or the single one that all layers share."""
        return list(self.layers) if self.shared is None else [self.shared]

    def each(self, made: List[Made]) -> List[Made]:
        """``made`` for every layer, or the single one that all layers share: L entries."""
        return made * self.shape.layers if len(made) == 1 else made

    def stacked(self, name: str, at: Optional[Span] = None, *, zero: int = 0) -> Tensor:
        """The parameter ``name`` of every table, of its rows (along dimension 1) those ``at`` these
        numbers, or all: (L|1, H|1, ...). ``zero``: the row of position or distance 0.

        In float32 or better, also in a model of half precision.
        """
        tables = [getattr(table, name) for table in self.tables()]

        def rows(table: Tensor, dim: int) -> Tensor:
            if at is None:
                return table
            return read(table, at, self.shape.beyond, dim=dim, zero=zero)

        if len(tables) == 1:
            stack = rows(tables[0], 1).unsqueeze(0)
        elif torch.is_grad_enabled():  # one gradient for the rows of all tables
            stack = rows(torch.stack(tables), 2)
        else:  # no copies of whole tables
            stack = torch.stack([rows(table, 1) for table in tables])
        return stack.to(at_least_float32(stack.dtype))

    def extra_repr(self) -> str:
        return f"{self.shape}, sharing={self.sharing}"


class AttentionPositions(LayerTables, ABC):
    """What an encoding brings to all L layers of one kind of attention."""

    # Whether there are tables that end, at max_queries and max_keys.
    limited: ClassVar[bool] = True

    @property
    def refuses(self) -> bool:
        """Whether positions end where the tables do."""
        return self.limited and self.shape.beyond == REFUSE

    def for_layers(self, queries: Span, keys: Span) -> List[LayerPositions]:
        """What each of the L layers gets, for T queries over S keys.

        Raises :class:`UserError` for a range that goes beyond the longest position, unless
        something is to be read there. Randomized positions are always below.
        """
        if self.refuses:
            may_go_on = not self.shape.first_is_cls
            need_positions(queries, self.shape.max_queries, may_go_on=may_go_on)
            need_positions(keys, self.shape.max_keys, may_go_on=may_go_on)
        return self.each(self.parts(queries, keys))

    @abstractmethod
    def parts(self, queries: Span, keys: Span) -> List[LayerPositions]:
        """:meth:`for_layers` of positions that there are; one part where all layers share it."""


class AttentionBias(AttentionPositions):
    """A bias of the logits that depends on positions alone."""

    @abstractmethod
    def forward(self, queries: Span, keys: Span) -> Tensor:
        """For T queries and S keys, at positions that there are: (L|1, H|1, T, S) in float32 or
        better; 1 where layers or heads share.
        """

    def parts(self, queries: Span, keys: Span) -> List[LayerPositions]:
        return [LayerPositions(bias) for bias in self(queries, keys).unbind(0)]


@dataclass(frozen=True)
class PositionEncoding:
    """An encoding with its options settled; ``NAMES`` of this package has all that have a name.

    The fields are the options that the encoding takes (see ``options.py``). ``sharing``: one of
    ``SHARING``, or None where the encoding has nothing per head or layer. Raises :class:`UserError`
    for options that the encoding cannot take.
    """

    name: ClassVar[str]
    default_sharing: ClassVar[Optional[str]] = None  # None: no parameters per head or layer
    content_scale: ClassVar[float] = 1.0  # further factor of q . k where it acts
    acts_in: ClassVar[Tuple[str, ...]] = KINDS  # of attention
    fixed_input: ClassVar[bool] = False  # adds values at the input that cannot become smaller
    mixes_keys: ClassVar[bool] = False  # the encoder's keys stand for no single token
    draws: ClassVar[bool] = False  # training draws positions in the encoding's own way

    # Fields that encoder-only architectures set, where they do not keep the defaults.
    sentence_preset: ClassVar[Dict[str, Any]] = {}

    sharing: Optional[str] = option(
        "--position-sharing",
        None,
        "who shares the tables of the encoding",
        kind=str,
        choices=SHARING,
    )

    def __post_init__(self) -> None:
        if self.sharing is None:
            object.__setattr__(self, "sharing", self.default_sharing)
        for name, its in options_of(self):
            if its.kind is float and type(getattr(self, name)) is int:  # 2 and 2.0 are one model
                object.__setattr__(self, name, float(getattr(self, name)))
        problems = list(self.problems())
        if problems:
            raise UserError("; ".join(problems))

    def problems(self) -> Iterator[str]:
        """A sentence for each invalid option."""
        for name, its in options_of(self):
            problem = its.problem(getattr(self, name))
            if problem is not None:
                yield problem
        if self.sharing in SHARING and self.default_sharing is None:
            yield (
                f"--position-sharing {self.sharing}: {self.name} has no parameters per head or "
                "layer to share; leave the option out"
            )

    def content_scale_in(self, kind: str) -> float:
        """Further factor of q . k in one kind of attention."""
        return self.content_scale if kind in self.acts_in else 1.0

    @property
    def own_input(self) -> str:
        """Name of what it has at the input, unless another one is given."""
        return "none" if self.acts_in else self.name

    def token_dim(self, embed_dim: int) -> int:
        """Width of the token embeddings in a stack of width E."""
        return embed_dim

    def input_positions(self, max_positions: int, embed_dim: int) -> Optional[InputPositions]:
        """What is added to the embeddings (n, E) of a stack; None: nothing."""
        return None

    def attention_positions(self, shape: AttentionShape) -> Optional[AttentionPositions]:
        """What happens inside one kind of attention; None: nothing."""
        return self.in_attention(shape) if shape.kind in self.acts_in else None

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        """The same for a kind of attention that the encoding acts in."""
        raise NotImplementedError

    def token_positions(self, max_positions: int) -> TokenPositions:
        """Where the tokens of a stack stand, sentences having up to n."""
        return TokenPositions()

    def describe(self) -> str:
        """Name and settled options: what decides over the meaning of the weights."""
        words = [self.name]
        for name, _ in options_of(self):
            value = getattr(self, name)
            if value is not None:
                words.append(f"{name.replace('_', '-')}={value}")
        return " ".join(words)

    def continues(self) -> Iterator[str]:
        """Descriptions of encodings whose weights mean the same as those of this one."""
        yield self.describe()
