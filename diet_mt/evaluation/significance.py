"""Lines of ``diet-mt compare``: pairs of systems, from the counts next to the rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

from ..command_line import need_known
from ..corpora.parallel import read_lines
from ..errors import UserError
from .comparisons import p_text, resampled_group
from .groups import Group, Line, group
from .hypotheses import by_checksum, read_hypotheses, source_of
from .records import read_results
from .sentences import read_sentences, sentence_bleu

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
                    f"\t{round(difference, 2) + 0.0:+.2f} ± {half:.2f} BLEU\tp {p_text(p)}"
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


def show_sentences(
    files: Sequence[Path], systems: Sequence[str], count: int, references: Sequence[Path]
) -> None:
    """Prints the sentences on which the first seeds of two systems differ most in sentence BLEU,
    with sources and references where these are given. Raises UserError for hypotheses that changed.
    """
    given = by_checksum(references, ())
    for path in files:
        kept, rows = read_sentences([path]), read_results(path)
        for each in group(rows):
            for pair in _pairs(each, systems):
                first = [line.results[0] for line in pair]
                if not all(kept.is_counted([result]) for result in first):
                    continue
                digest = first[0].references_sha256
                sides: list[tuple[str, Sequence[str]]] = []
                if digest in given:
                    reference = given[digest][0]
                    if source := source_of(reference, first[0]):
                        sides.append(("source", list(read_lines(source))))
                    sides.append(("reference", list(read_lines(reference))))
                texts = [(f"{r.system}.{r.seed}", read_hypotheses(path.parent, r)) for r in first]
                lengths = kept.texts[digest].reference_lengths
                own, other = (
                    sentence_bleu(kept.counts[r.hypotheses_sha256, digest], lengths) for r in first
                )
                gaps = [a - b for a, b in zip(own, other, strict=True)]
                for n in sorted(range(len(gaps)), key=lambda n: -abs(gaps[n]))[:count]:
                    print(f"{path}\tsentence {n + 1}\t{gaps[n]:+.1f} BLEU")
                    for name, lines in [*sides, *texts]:
                        print(f"  {name}\t{lines[n]}")
