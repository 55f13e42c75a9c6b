"""An encoding at chosen sites and in chosen layers, with consecutive or randomized positions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..system.errors import UserError
from .absolute import NoPositions
from .base import (
    ENCODER,
    KINDS,
    AttentionPositions,
    AttentionShape,
    InputPositions,
    PositionEncoding,
)
from .position_ids import RandomizedPositions, TokenPositions


@dataclass(frozen=True)
class EncodingAtSites(PositionEncoding):
    """The encodings of a model: one inside attention and one at the input.

    Attributes:
        inside: the encoding inside attention.
        at_input: the encoding at the input; equal to ``inside`` unless another one is chosen.
        kinds: the kinds of attention in which ``inside`` acts, in the order of ``KINDS``.
        layers: the layers in which it acts: numbers from 0 and Python slices, separated by
            commas.
        randomized: the number of positions N that
            :class:`~diet_mt.positions.position_ids.RandomizedPositions` draws from, or None.

    Raises :class:`UserError` for invalid options.
    """

    inside: PositionEncoding = field(default_factory=NoPositions)
    at_input: PositionEncoding = field(default_factory=NoPositions)
    kinds: tuple[str, ...] = ()
    layers: str = ":"
    randomized: int | None = None

    def __post_init__(self) -> None:
        for name, value in (
            ("name", self.inside.name),
            ("acts_in", self.kinds),
            ("content_scale", self.inside.content_scale),
            ("sharing", self.inside.sharing),
            ("fixed_input", self.at_input.fixed_input),
            ("mixes_keys", self.inside.mixes_keys and ENCODER in self.kinds),
        ):
            object.__setattr__(self, name, value)
        super().__post_init__()

    def problems(self) -> Iterator[str]:
        yield from self._randomized_problems()
        if self.layers != ":" and not self.kinds:
            yield f"--position-layers {self.layers}: {self.name} acts at the input; leave it out"
        allowed = self.inside.acts_in
        for kind in self.kinds:
            if kind not in KINDS:
                word = f" {kind}" if kind else ", a word is missing"
                yield f"--position-in{word}: choose from {', '.join(KINDS)}"
            elif kind not in allowed:
                where = f"only in {', '.join(allowed)}" if allowed else "at the input alone"
                yield f"--position-in {kind}: {self.name} acts {where}; leave {kind} out"
        if self.inside.mixes_keys and ENCODER not in self.kinds:
            yield (
                f"--position-in {','.join(self.kinds)}: {self.name} mixes keys in the encoder; add "
                "it, or choose an encoding that mixes none"
            )
        if self.at_input == self.inside:
            return
        if self.at_input.acts_in:
            yield f"--position-input {self.at_input.name}: acts inside attention, not at the input"
        elif not allowed:
            yield (
                f"--position-input {self.at_input.name}: {self.name} is at the input itself; give "
                "one of them as --position-encoding alone"
            )

    def _randomized_problems(self) -> Iterator[str]:
        if self.randomized is None:
            return
        flag = f"--position-randomized {self.randomized}"
        for encoding in dict.fromkeys((self.inside, self.at_input)):
            if encoding.draws:
                yield f"{flag}: {encoding.name} draws its positions itself; leave one of them out"
        if not self.kinds and self.at_input == NoPositions():
            yield f"{flag}: {self.name} has no positions; leave it out"

    def skipped(self, layers: int) -> tuple[int, ...]:
        every = range(layers)
        chosen: set[int] = set()
        try:
            for part in self.layers.split(","):
                ends = [int(end) if end else None for end in part.split(":")]
                chosen |= set(every[slice(*ends)] if len(ends) > 1 else [every[int(part)]])
        except (ValueError, TypeError, IndexError):
            chosen = set()
        if not chosen:
            raise UserError(
                f"--position-layers {self.layers}: selects no layers; give numbers below {layers}, "
                "or slices such as 0:3 or ::2, separated by commas"
            )
        return tuple(number for number in every if number not in chosen)

    def token_dim(self, embed_dim: int) -> int:
        return self.at_input.token_dim(embed_dim)

    def input_positions(self, max_positions: int, embed_dim: int) -> InputPositions | None:
        return self.at_input.input_positions(self.randomized or max_positions, embed_dim)

    def in_attention(self, shape: AttentionShape) -> AttentionPositions:
        if self.randomized is not None:
            shape = replace(shape, max_queries=self.randomized, max_keys=self.randomized)
        return self.inside.in_attention(shape)

    def token_positions(self, max_positions: int) -> TokenPositions:
        if self.randomized is None:
            return super().token_positions(max_positions)
        return RandomizedPositions(self.randomized, max_positions)

    def describe(self) -> str:
        return next(self.continues())

    def continues(self) -> Iterator[str]:
        words = ""
        if self.kinds != self.inside.acts_in:
            words += f" in={','.join(self.kinds)}"
        if self.layers != ":":
            words += f" layers={self.layers}"
        if self.at_input != self.inside:
            words += f" input={self.at_input.describe()}"
        if self.randomized is not None:
            words += f" randomized={self.randomized}"
        for text in self.inside.continues():
            yield text + words
