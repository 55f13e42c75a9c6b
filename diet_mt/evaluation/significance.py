"""A paired bootstrap test of each result against the baseline, or of two systems."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from ..command_line import unknown
from ..errors import UserError
from .bootstrap import RESAMPLES, fixed_seed
from .comparisons import (
    DIGITS,
    Comparison,
    comparison_of,
    file_beside,
    key_of,
    read_comparisons,
)
from .groups import BASELINE, group
from .json_rows import write_rows
from .kept import kept_hypotheses
from .records import Result, read_results

Pair = tuple[Result, Result]  # a system's, the other's
References = Mapping[str, Sequence[str]]  # checksum -> lines


def pairs_of(results: Sequence[Result], systems: Sequence[str] | None = None) -> list[Pair]:
    """Every result that has one to be compared with, and that.

    ``systems``: A and B, for A against B; otherwise all against the baseline.

    Raises UserError for a system that there are no results of.
    """
    first, second = systems or (None, BASELINE)
    known = sorted({result.system for result in results})
    for name in systems or ():
        if name not in known:
            raise UserError(unknown("system", name, known, f"; there is {', '.join(known)}"))
    return [
        (result, other)
        for each in group(results)
        for result in each.results
        if first in (None, result.system)
        if (other := each.partner(result, second)) is not None
    ]


def compare(
    system: Sequence[str], baseline: Sequence[str], references: Sequence[str]
) -> tuple[float, float, str]:
    """BLEU of ``system`` above that of ``baseline``, the p-value, and the test's signature."""
    with fixed_seed():
        test = PairedTest(
            [("baseline", baseline), ("system", system)],
            {"BLEU": BLEU(references=[references])},
            references=None,
            test_type="bs",
            n_samples=RESAMPLES,
        )
        signatures, scores = test()
    first, second = cast("list[Any]", scores["BLEU"])  # the names are another list
    difference = second.score - first.score
    # Where all resamples differ by the same, SacreBLEU counts none of them for chance, and would
    # call that significant: of one sentence, and of translations that score alike.
    tells_nothing = round(difference, DIGITS) == 0 or len(references) == 1
    return difference, 1.0 if tells_nothing else float(second.p_value), str(signatures["BLEU"])


def compare_files(
    files: Sequence[Path],
    references: References,
    systems: Sequence[str] | None = None,
    *,
    dry_run: bool = False,
) -> None:
    """Prints a line for each pair; those with the baseline are kept beside the files.

    Raises UserError where the references of no pair are given, and as ``pairs_of``.
    """
    missing: Counter[str] = Counter()
    count = 0
    for path in files:
        pairs = pairs_of(read_results(path), systems)
        if not pairs:
            needed = " and ".join(systems or (BASELINE, "another system"))
            print(f"{path}\tnothing to compare: that needs {needed} under the same conditions")
            continue
        unknown = [pair for pair in pairs if not _known(path, pair)]
        without = [pair for pair in unknown if pair[0].references_sha256 not in references]
        missing.update(f"{result.test_set}, {result.direction}" for result, _ in without)
        left = [pair for pair in pairs if pair not in without]
        count += len(left)
        if dry_run:
            for result, other in left:
                print(f"{path}\t{result.system}\tseed {result.seed}\tto {other.system}")
        else:
            found = [_shown(path, pair, references) for pair in left]
            if found and not systems:
                write_rows(file_beside(path), found)
    _tell(missing, is_all=not count)


def _known(path: Path, pair: Pair) -> Comparison | None:
    return read_comparisons(file_beside(path)).get(key_of(*pair))


def _shown(path: Path, pair: Pair, references: References) -> Comparison:
    """The comparison of two results, computed unless it is kept, and a line on stdout."""
    known = _known(path, pair)
    result, other = pair
    found = known or _compared(path.parent, pair, references[result.references_sha256])
    words = [str(path), result.system, f"seed {result.seed}", f"{found.bleu_difference:+.2f} BLEU"]
    words.append(f"to {other.system}, p {found.p_text}{' (kept)' if known else ''}")
    print("\t".join(words), flush=True)
    return found


def _compared(folder: Path, pair: Pair, references: Sequence[str]) -> Comparison:
    for each in pair:
        if each.sentences != len(references):
            raise UserError(f"{each.hypotheses}: not {len(references)} lines; evaluate again")
    ours, theirs = (kept_hypotheses(folder, each) for each in pair)
    difference, p_value, signature = compare(ours, theirs, references)
    return comparison_of(*pair, bleu_difference=difference, p_value=p_value, signature=signature)


def _tell(missing: Counter[str], *, is_all: bool) -> None:
    """Warns of pairs without references; raises UserError if they are all there is."""
    if missing and is_all:
        raise UserError(f"none of the references are those of {'; '.join(missing)}")
    for name, count in missing.items():
        print(
            f"warning: none of the references are those of {name}: no p-value for {count} of the "
            "results",
            file=sys.stderr,
        )
