"""How sure the differences are: a paired bootstrap test of each result against the baseline.

    diet-mt compare results/*.jsonl --references data/multi30k.en-de/raw/test.de

SacreBLEU's own test, BLEU, 1,000 resamples of the test set. The other side is the baseline's
result of the same group and seed, or of its first seed. Beside each ``CORPUS.jsonl`` the outcome is
kept in ``significance/CORPUS.jsonl``, where the leaderboard finds it; pairs already there are not
computed again. References are not kept with the results; a row finds its own by checksum, and one
whose references are not given stays without a p-value.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from ..command_line import run
from ..errors import UserError
from .bootstrap import RESAMPLES, fixed_seed
from .comparisons import (
    DIGITS,
    Comparison,
    comparison_of,
    file_beside,
    key_of,
    read_comparisons,
    write_comparisons,
)
from .groups import BASELINE, group
from .kept import kept_hypotheses, parser_with_references, read_references
from .records import Result, read_results

Pair = tuple[Result, Result]  # a system's, the baseline's


def pairs_of(results: Sequence[Result]) -> list[Pair]:
    """Every result that has a baseline to compare with, and that."""
    return [
        (result, other)
        for each in group(results)
        for result in each.results
        if (other := each.partner(result)) is not None
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


def _compared(folder: Path, pair: Pair, references: Sequence[str]) -> Comparison:
    result, other = pair
    for each in pair:
        if each.sentences != len(references):
            raise UserError(f"{each.hypotheses}: not {len(references)} lines; evaluate again")
    difference, p_value, signature = compare(
        kept_hypotheses(folder, result), kept_hypotheses(folder, other), references
    )
    return comparison_of(*pair, bleu_difference=difference, p_value=p_value, signature=signature)


def complete(path: Path, references: Mapping[str, Sequence[str]]) -> tuple[int, Counter[str]]:
    """Writes the comparisons of one file of results, and a line for each on stdout.

    Returns their number, and test set and direction of the pairs that no references were given for.
    """
    file = file_beside(path)
    kept = read_comparisons(file)
    pairs = pairs_of(read_results(path))
    if not pairs:
        print(f"{path}\tnothing to compare: that needs {BASELINE} and another system")
        return 0, Counter()
    found, missing = [], Counter[str]()
    for result, other in pairs:
        known = kept.get(key_of(result, other))
        if not known and result.references_sha256 not in references:
            missing[f"{result.test_set}, {result.direction}"] += 1
            continue
        comparison = known or _compared(
            path.parent, (result, other), references[result.references_sha256]
        )
        found.append(comparison)
        print(
            f"{path}\t{result.system}\tseed {result.seed}\t{comparison.bleu_difference:+.2f} BLEU"
            f"\tp {comparison.p_text}{' (kept)' if known else ''}",
            flush=True,
        )
    if found:
        write_comparisons(file, found)
    return len(found), missing


def _tell(missing: Counter[str], *, is_all: bool) -> None:
    """Warns of pairs without references; raises UserError if they are all there is."""
    if missing and is_all:
        raise UserError(f"none of the references are those of {'; '.join(missing)}")
    for name, count in missing.items():
        print(
            f"significance: warning: none of the references are those of {name}: no p-value for "
            f"{count} of the results",
            file=sys.stderr,
        )


def main(argv: list[str] | None = None) -> int:
    args = parser_with_references("compare", __doc__).parse_args(argv)
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)

    def body() -> None:
        references = read_references(args.references)
        outcomes = [complete(path, references) for path in args.results]
        missing = sum((each for _, each in outcomes), Counter[str]())
        _tell(missing, is_all=not any(count for count, _ in outcomes))

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
