"""The one interface of every position encoding, and the meaning of every shape letter.

    B  sentences in the batch        T  queries (target positions)    L  layers of one stack
    H  attention heads               S  keys (source positions)       E  model width (paper: d)
    D  head size (paper: d_h)        n  longest position, in tokens   R  rank (paper: d_p)

Positions count real tokens: the first real token of a sentence is position 0. The stacks bring
every batch into right-padded form before they ask for a term, so column and position agree, a term
is the same for all sentences, and two integers say where it lies: queries stand from
``query_start`` to ``query_start + T - 1``, keys from 0 to S - 1. Decoding step t is
``query_start=t, T=1``. (With padding on the left a term would differ from row to row and cost B
times more.)

An encoding can speak at two places, and says so by what it builds:

- :meth:`PositionEncoding.input_term`: added to the token embeddings, once per stack;
- :meth:`PositionEncoding.attention_bias`: added to the attention logits, for one kind of attention
  of one stack.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Callable, ClassVar, Optional, Sequence

import torch
from torch import Tensor, nn

from ..errors import UserError

SHARING = ("none", "head-wise", "layer-wise")


def at_least_float32(dtype: torch.dtype) -> torch.dtype:
    """float32 for half precision, otherwise ``dtype``: what sums are taken in."""
    return torch.promote_types(dtype, torch.float32)


@dataclass(frozen=True)
class AttentionShape:
    """One kind of attention in one stack: everything that a bias needs to know of it.

    ``layers`` L; ``heads`` H; ``head_dim`` D; ``max_queries`` and ``max_keys`` in tokens.
    """

    layers: int
    heads: int
    head_dim: int
    max_queries: int
    max_keys: int


def too_long(length: int, limit: int) -> str:
    """Message for a sentence of ``length`` tokens where tables end at ``limit`` positions."""
    return (
        f"a sentence of {length} tokens is longer than the {limit} positions that this model was "
        "built with; train with a larger --max-source-positions or --max-target-positions, or "
        "filter such sentences"
    )


class AttentionBias(nn.Module, ABC):
    """Content-independent term of the logits for all L layers of one kind of attention.

    ``make_table(heads)`` builds the parameters of one layer. Sharing decides how often it is called
    and with how many heads (paper, section 4.4): ``none`` L times with H heads, ``head-wise`` L
    times with one, ``layer-wise`` once with H. Tables of single layers live in a list named
    ``layers`` so that fairseq's layer pruning renumbers them together with the layers they belong
    to.
    """

    def __init__(
        self, shape: AttentionShape, sharing: str, make_table: Callable[[int], nn.Module]
    ) -> None:
        super().__init__()
        self.shape = shape
        self.sharing = sharing
        heads = 1 if sharing == "head-wise" else shape.heads
        self.shared: Optional[nn.Module] = None
        self.layers = nn.ModuleList()
        if sharing == "layer-wise":
            self.shared = make_table(heads)
        else:
            self.layers.extend(make_table(heads) for _ in range(shape.layers))

    @abstractmethod
    def forward(self, query_start: int, query_len: int, key_len: int) -> Tensor:
        """``query_len`` T, ``key_len`` S -> (L|1, H|1, T, S) in float32 or better; 1 where layers
        or heads share.

        Raises :class:`UserError` for a position beyond the tables (see :meth:`check_range`).
        """

    def tables(self) -> Sequence[nn.Module]:
        """The L tables, or the single one that all layers share."""
        return list(self.layers) if self.shared is None else [self.shared]

    def stacked(self, name: str, start: int, stop: int) -> Tensor:
        """Rows ``start .. stop - 1`` (along dimension 1) of the parameter ``name`` of every table:
        (L|1, H|1, ...).

        In float32 or better, also in a model of half precision.
        """
        rows = [getattr(table, name)[:, start:stop] for table in self.tables()]
        stack = rows[0].unsqueeze(0) if len(rows) == 1 else torch.stack(rows)
        return stack.to(at_least_float32(stack.dtype))

    def check_range(self, query_start: int, query_len: int, key_len: int) -> None:
        """Raises :class:`UserError` where a query or key lies beyond the longest position."""
        for last, limit in (
            (query_start + query_len, self.shape.max_queries),
            (key_len, self.shape.max_keys),
        ):
            if last > limit:
                raise UserError(too_long(last, limit))

    def extra_repr(self) -> str:
        return f"{self.shape}, sharing={self.sharing}"


class InputTerm(nn.Module, ABC):
    """Term added to the token embeddings of one stack.

    Has the calling form of fairseq's position embeddings, so that fairseq's own embedding code uses
    it.
    """

    def __init__(self, max_positions: int, embed_dim: int) -> None:
        super().__init__()
        self.max_positions = max_positions
        self.embed_dim = embed_dim

    @abstractmethod
    def table(self) -> Tensor:
        """(n, E) rows to add, row i for position i."""

    def rows(self, start: int, stop: int) -> Tensor:
        """Terms of positions ``start .. stop - 1``: (1, T, E).

        Raises :class:`UserError` beyond the longest position.
        """
        if stop > self.max_positions:
            raise UserError(too_long(stop, self.max_positions))
        return self.table()[start:stop].unsqueeze(0)

    def forward(self, tokens: Tensor) -> Tensor:
        """``tokens`` (B, T), right-padded -> (1, T, E)."""
        return self.rows(0, tokens.size(1))

    def extra_repr(self) -> str:
        return f"max_positions={self.max_positions}, embed_dim={self.embed_dim}"


@dataclass(frozen=True)
class PositionEncoding:
    """An encoding with its options settled. Subclasses are the schemes; ``NAMES`` in this package
    lists them.

    ``sharing``: one of ``SHARING``, or None where the scheme has nothing per head or layer.
    ``rank``: R, or None for the head size. Raises :class:`UserError` for options that the scheme
    cannot take.
    """

    name: ClassVar[str]
    default_sharing: ClassVar[Optional[str]] = None  # None: no parameters per head or layer
    takes_rank: ClassVar[bool] = False

    sharing: Optional[str] = None
    rank: Optional[int] = None

    def __post_init__(self) -> None:
        problems = []
        if self.sharing is None:
            object.__setattr__(self, "sharing", self.default_sharing)
        elif self.sharing not in SHARING:
            problems.append(f"--position-sharing {self.sharing}: choose from {', '.join(SHARING)}")
        elif self.default_sharing is None:
            problems.append(
                f"--position-sharing {self.sharing}: {self.name} has no parameters per head or "
                "layer to share; leave the option out"
            )
        if self.rank is not None and not self.takes_rank:
            problems.append(
                f"--position-rank {self.rank}: {self.name} has no rank; leave the option out"
            )
        elif self.rank is not None and self.rank < 1:
            problems.append(f"--position-rank {self.rank}: must be at least 1")
        if problems:
            raise UserError("; ".join(problems))

    def input_term(self, max_positions: int, embed_dim: int) -> Optional[InputTerm]:
        """What is added to the embeddings (n, E) of a stack; None: nothing."""
        return None

    def attention_bias(self, shape: AttentionShape) -> Optional[AttentionBias]:
        """What is added to the logits of one kind of attention; None: nothing."""
        return None

    def describe(self) -> str:
        """The choices that decide what is computed and leave no trace in the shapes of the
        parameters.
        """
        return self.name if self.sharing is None else f"{self.name} sharing={self.sharing}"
