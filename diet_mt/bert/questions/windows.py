"""A context that is longer than the model's input is read through windows that overlap.

Devlin et al. (2018), arXiv:1810.04805, the published code: a window begins ``stride`` pieces after
the one before, until one reaches the end of the context.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import UserError

# <s> question </s> </s> context </s>: the form of fairseq's sentence prediction with
# --init-token 0 --separator-token 2.
SPECIAL = 4


@dataclass(frozen=True)
class WindowSizes:
    """Sizes in pieces. Raises UserError where a window might pass over some of the context."""

    max_tokens: int = 512  # of a window, with its question and special tokens
    stride: int = 128  # from the start of a window to that of the next
    max_question: int = 64  # what is longer is cut

    def __post_init__(self) -> None:
        least = self.room(self.max_question)
        if least < self.stride:
            raise UserError(
                f"max_tokens {self.max_tokens}: beside a question of {self.max_question} and "
                f"{SPECIAL} special tokens, {least} are left for the context, fewer than the "
                f"stride {self.stride}; give more tokens, a shorter stride or shorter questions"
            )

    def room(self, question: int) -> int:
        """Pieces of the context beside a question of so many."""
        return self.max_tokens - question - SPECIAL


def windows(pieces: int, room: int, stride: int) -> list[tuple[int, int]]:
    """Begin and end, in pieces of the context, of each window; together they cover it.

    Args:
        pieces: of the context; with none, there is one empty window.
        room: pieces in one window, at least ``stride``.
    """
    found = [(0, min(pieces, room))]
    while found[-1][1] < pieces:
        begin = found[-1][0] + stride
        found.append((begin, min(pieces, begin + room)))
    return found
