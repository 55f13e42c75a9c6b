"""Lines of ``diet-mt compare``: pairs of systems, from the counts next to the rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

from ..blocks import number
from ..command_line import need_known
from ..errors import UserError
from .comparisons import p_text, resampled_group
from .groups import Group, Line, group
from .records import read_results
from .sentences import read_sentences

Pair = tuple[Line, Line]


def compare_files(files: Sequence[Path], systems: Sequence[str] | None = None) -> None:
    """Prints a line for each pair of systems, the better one first.

    ``systems``: A and B, for A against B alone. Raises UserError for an unknown system, and where
    the sentences of no pair are counted.
    """
    groups = {path: group(read_results(path)) for path in files}
    if empty := next((path for path, own in groups.items() if not own), None):
        raise UserError(f"{empty}: no results; diet-mt evaluate adds them")
    every = [each for own in groups.values() for each in own]
    need_known("system", systems or (), (line.system for each in every for line in each.lines))
    compared = uncounted = 0
    for path, own in groups.items():
        kept = read_sentences([path])
        pairs = 0
        for each in own:
            missing = [line for line in each.lines if not kept.is_counted(line.results)]
            wanted = list(_pairs(each, systems))
            known = [pair for pair in wanted if not set(pair) & set(missing)]
            pairs, compared = pairs + len(wanted), compared + len(known)
            uncounted += len(wanted) - len(known)
            if len(known) < len(wanted):
                names = ", ".join(line.name for line in missing)
                print(
                    f"warning: {path}: no sentence counts of {names}; give --references",
                    file=sys.stderr,
                )
            if not known or not (table := resampled_group(each, kept)):
                continue
            for first, second in known:
                difference, half, p = table.difference(first, second)
                print(
                    f"{path}\t{first.name}\tto {second.name}"
                    f"\t{number(difference, '+.2f', half)} BLEU\tp {p_text(p, table.signature)}"
                    f"\tseeds {len(first.results)} and {len(second.results)}",
                    flush=True,
                )
        if not pairs:
            needed = " and ".join(systems or ("two systems",))
            print(f"{path}\tnothing to compare: that needs {needed} under the same conditions")
    if uncounted and not compared:
        raise UserError("no sentence counts of any pair; give --references, the raw test sets")


def _pairs(each: Group, systems: Sequence[str] | None) -> Iterator[Pair]:
    """The better one first, unless two were named."""
    if not systems:
        yield from combinations(each.lines, 2)
        return
    first, second = ([line for line in each.lines if line.system == name] for name in systems)
    yield from ((one, other) for one in first for other in second if one is not other)
