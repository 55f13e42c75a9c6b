"""Who does what to whom: translations of sentences that have a twin with the roles swapped."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path

from ..corpora.parallel import twins_beside
from ..errors import UserError
from ..files import text_lines


def role_accuracy(
    hypotheses: Sequence[str], references: Sequence[str], twins: Sequence[str]
) -> float | None:
    """Of the sentences with a twin, in %, translations nearer to their reference than to the
    twin's; None where there is no twin.

    Near is what shares words in the same order (the ratio of Python's difflib). A translation that
    is as near to both counts half, so that who knows nothing of roles has 50. ``twins``: the
    references of the twins; empty where a sentence has none.
    """
    points = [
        _point(hypothesis, reference, twin)
        for hypothesis, reference, twin in zip(hypotheses, references, twins, strict=True)
        if twin
    ]
    return round(100 * sum(points) / len(points), 4) if points else None


def _point(hypothesis: str, reference: str, twin: str) -> float:
    own, other = (
        SequenceMatcher(None, each.split(), hypothesis.split(), autojunk=False).ratio()
        for each in (reference, twin)
    )
    return 0.5 if own == other else float(own > other)


def roles_of(hypotheses: Sequence[str], lines: Sequence[str], references: Path) -> float | None:
    """The role accuracy for a test set whose preparation has written twins; otherwise None.

    ``lines``: of the file ``references``. Raises UserError where the file of twins cannot be read,
    or has another number of lines.
    """
    file = twins_beside(references)
    if not file.is_file():
        return None
    twins = [line for _, line in text_lines(file)]
    if len(twins) != len(lines):
        raise UserError(f"{file}: {len(twins)} lines, but {references} has {len(lines)}")
    return role_accuracy(hypotheses, lines, twins)
