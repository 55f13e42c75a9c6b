"""Scores of saved hypotheses, computed again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..corpora.parallel import read_lines
from ..errors import UserError
from ..files import sha256
from .hypotheses import of_row, read_hypotheses
from .records import Result, read_all
from .resampling import counter
from .scores import scores, without_version
from .sentences import Sentences, read_sentences


def rescore(files: Sequence[Path], references: Sequence[Path]) -> None:
    """Prints a line for each row. Raises UserError where one differs from its hypotheses."""
    texts = {sha256(path): list(read_lines(path)) for path in references}
    rows, wrong = read_all(files), 0
    counts = read_sentences(files)
    for path, row in rows:
        faults = _faults_of(path, row, texts, counts)
        print(f"{path}\t{row.system}\tseed {row.seed}\t", end="")
        print("; ".join(faults) or f"BLEU {row.bleu:.2f} again")
        wrong += bool(faults)
    if wrong:
        raise UserError(f"{wrong} of {len(rows)} rows differ, or cannot be scored again")


def _faults_of(
    path: Path, row: Result, references: Mapping[str, Sequence[str]], counts: Sentences
) -> list[str]:
    """Fields of a row that differ from its hypotheses, or why these cannot be scored."""
    try:
        own = list(of_row(row, references))
        hypotheses = read_hypotheses(path.parent, row)
        different = differences(row, scores(hypotheses, own))
        if counts.is_counted([row]) and (counter(own)(hypotheses) != counts.statistics(row)).any():
            different.append("other n-gram counts")
    except UserError as error:
        return [str(error)]
    return different


def differences(result: Result, again: Mapping[str, object]) -> list[str]:
    """Fields of a row, if it has them, that differ from those computed again."""
    return [
        f"{name} {stored} stored, {value} now"
        for name, value in again.items()
        if (stored := getattr(result, name)) not in (None, "")
        if _comparable(stored) != _comparable(value)
    ]


def _comparable(value: object) -> object:
    """A signature without its version; a number as it is."""
    return without_version(value) if isinstance(value, str) else value
