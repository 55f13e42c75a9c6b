"""An encoding in some kinds of attention only, and beside it positions at the input."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Iterator, Optional, Tuple

from .base import ENCODER, KINDS, AttentionPositions, AttentionShape, PositionEncoding
from .input import InputPositions
from .none import NoPositions


@dataclass(frozen=True)
class Placed(PositionEncoding):
    """``inside`` acts in the kinds of attention ``places`` alone, in the order of ``KINDS``; at the
    input there is what ``at_input`` adds.

    Raises :class:`UserError` for places where ``inside`` does not act.
    """

    inside: PositionEncoding = field(default_factory=NoPositions)
    at_input: PositionEncoding = field(default_factory=NoPositions)
    places: Tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, value in (
            ("name", self.inside.name),
            ("sharing", self.inside.sharing),
            ("fixed_input", self.at_input.fixed_input),
            ("mixes_keys", self.inside.mixes_keys and ENCODER in self.places),
        ):
            object.__setattr__(self, name, value)
        super().__post_init__()

    def problems(self) -> Iterator[str]:
        own = self.inside.acts_in
        for place in self.places:
            if place not in KINDS:
                yield f"--position-in {place}: choose from {', '.join(KINDS)}"
            elif place not in own:
                where = f"only in {', '.join(own)}" if own else "at the input alone"
                yield f"--position-in {place}: {self.name} acts {where}; leave {place} out"
        if self.at_input == self.inside:
            return
        if self.at_input.acts_in:
            yield f"--position-input {self.at_input.name}: acts inside attention, not at the input"
        elif not own:
            yield (
                f"--position-input {self.at_input.name}: {self.name} is at the input itself; give "
                "one of them as --position-encoding alone"
            )

    def content_scale_in(self, kind: str) -> float:
        return self.inside.content_scale_in(kind) if kind in self.places else 1.0

    def token_dim(self, embed_dim: int) -> int:
        return self.at_input.token_dim(embed_dim)

    def input_positions(self, max_positions: int, embed_dim: int) -> Optional[InputPositions]:
        return self.at_input.input_positions(max_positions, embed_dim)

    def attention_positions(self, shape: AttentionShape) -> Optional[AttentionPositions]:
        return self.inside.attention_positions(shape) if shape.kind in self.places else None

    def describe(self) -> str:
        words = [self.inside.describe()]
        if self.places != self.inside.acts_in:
            words.append(f"in={','.join(self.places)}")
        if self.at_input != self.inside:
            words.append(f"input={self.at_input.describe()}")
        return " ".join(words)

    def continues(self) -> Iterator[str]:
        rest = self.describe()[len(self.inside.describe()) :]
        for text in self.inside.continues():
            yield f"{text}{rest}"
