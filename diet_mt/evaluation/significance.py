"""Paired bootstrap tests of systems, over sentences and seeds: see ``resampling``."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from pathlib import Path

from sacrebleu.metrics import BLEU

from ..blocks import number
from ..command_line import need_known
from ..errors import UserError
from .bleu import SEED, without_version
from .comparisons import DIGITS, Comparison, file_beside, key_of, mark_of, p_text, read_comparisons
from .groups import Group, Line, group
from .json_rows import write_rows
from .kept import kept_hypotheses
from .records import read_results
from .resampling import RESAMPLES, Floats, bleu, counter, half_width, p_value, resampled

References = Mapping[str, Sequence[str]]  # checksum -> lines
Pair = tuple[Line, Line]


@dataclass(frozen=True)
class Resampled:
    """Systems of one group, resampled. BLEU from 0 to 100, mean of the seeds."""

    lines: tuple[Line, ...]
    scores: tuple[float, ...]
    samples: Floats  # (lines, resamples)
    sentences: int
    signature: str

    def difference(self, pair: Pair) -> tuple[float, float, float]:
        """BLEU of the first above the second, half of its 95 % interval, and the p-value."""
        first, second = map(self.lines.index, pair)
        difference = self.scores[first] - self.scores[second]
        differences = self.samples[first] - self.samples[second]
        # Resamples that are all alike, of one sentence or of translations that score alike, are
        # no sign that a difference is none of chance.
        tells_nothing = round(difference, DIGITS) == 0 or self.sentences == 1
        p = 1.0 if tells_nothing else p_value(differences, difference)
        return difference, half_width(differences), p

    def comparison(self, line: Line) -> Comparison:
        """What is kept of one system."""
        place = self.lines.index(line)
        others = {
            mark_of(other.results): self.difference((line, other))
            for other in self.lines
            if other is not line
        }
        mark, references = key_of(line.results)
        return Comparison(
            test_set=line.results[0].test_set,
            direction=line.results[0].direction,
            system=line.system,
            seeds=[result.seed for result in line.results],
            bleu=round(self.scores[place], DIGITS),
            bleu_ci=round(half_width(self.samples[place]), DIGITS),
            p_values={other: round(p, 6) for other, (_, _, p) in others.items()},
            signature=self.signature,
            mark=mark,
            references_sha256=references,
            half_widths={other: round(half, DIGITS) for other, (_, half, _) in others.items()},
        )


def resample(
    lines: Sequence[Line], hypotheses: Sequence[Sequence[Sequence[str]]], references: Sequence[str]
) -> Resampled:
    """Resamples systems.

    ``hypotheses``: of each line the sentences of each seed.
    """
    statistics = counter(references)
    systems = [[statistics(each) for each in seeds] for seeds in hypotheses]
    scores = [[float(bleu(each.sum(axis=0))) for each in seeds] for seeds in systems]
    signature = str(BLEU(references=[list(references)]).get_signature())
    return Resampled(
        lines=tuple(lines),
        scores=tuple(sum(each) / len(each) for each in scores),
        samples=resampled(systems, [int(mark_of(line.results), 16) for line in lines]),
        sentences=len(references),
        signature=signature.replace("nrefs:1|", f"nrefs:1|bs:{RESAMPLES}|seed:{SEED}|"),
    )


def compare_files(
    files: Sequence[Path],
    references: References,
    systems: Sequence[str] | None = None,
    *,
    dry_run: bool = False,
) -> None:
    """Prints a line for each pair of systems, the better one first; keeps all beside the files.

    Raises UserError where the references of no pair are given, for a system that there are no
    results of, and for hypotheses that are not those that were scored. ``systems``: A and B, for A
    against B alone; then nothing is kept.
    """
    missing: Counter[str] = Counter()
    others: list[str] = []  # whose references are not given
    count = 0
    found_in = {path: group(read_results(path)) for path in files}
    for path, groups in found_in.items():
        if not groups:
            raise UserError(f"{path}: holds no results; diet-mt evaluate adds them")
    every = chain.from_iterable(found_in.values())
    need_known("system", systems or (), (line.system for each in every for line in each.lines))
    for path, groups in found_in.items():
        known = read_comparisons(file_beside(path))
        rows: list[Comparison] = []
        shown: list[tuple[Resampled, list[Pair]]] = []
        asked = 0
        for each in groups:
            pairs = list(_pairs(each, systems))
            asked += len(pairs)
            if each.conditions.references_sha256 not in references:
                # What is known of it stays.
                kept = [known.get(key_of(line.results)) for line in each.lines]
                rows += [row for row in kept if row]
                others += [each.conditions.heading] if pairs else []
                if pairs and (systems or None in kept):
                    missing[each.conditions.heading] += len(each.lines)
                continue
            count += len(pairs)
            if systems and not pairs:
                continue
            if dry_run:
                for first, second in pairs:
                    print(f"{path}\t{first.name}\tto {second.name}")
                continue
            found = _resampled(path.parent, each, references[each.conditions.references_sha256])
            rows += [found.comparison(line) for line in each.lines]
            shown.append((found, pairs))
        if shown and not systems:
            write_rows(file_beside(path), rows)  # before `| head` may end us
        for found, pairs in shown:
            _show(path, found, pairs)
        if not asked:
            needed = " and ".join(systems or ("two systems",))
            print(f"{path}\tnothing to compare: that needs {needed} under the same conditions")
    if others and not count:
        raise UserError(f"none of the references are those of {'; '.join(others)}")
    _warn(missing)


def check_files(files: Sequence[Path], references: References) -> None:
    """Compares again what is kept beside the files, as far as its references are given, and prints
    a line for each group. Raises UserError where something else comes out.
    """
    wrong = 0
    for path in files:
        known = read_comparisons(file_beside(path))
        for each in group(read_results(path)):
            kept = {line: known.get(key_of(line.results)) for line in each.lines}
            own = references.get(each.conditions.references_sha256)
            if own is None or not any(kept.values()):
                continue
            found = _resampled(path.parent, each, own)
            differ = [
                line.name for line, row in kept.items() if not _alike(row, found.comparison(line))
            ]
            said = f"other comparisons of {', '.join(differ)}" if differ else "compared again"
            print(f"{path}\t{each.conditions.heading}\t{said}", flush=True)
            wrong += bool(differ)
    if wrong:
        raise UserError("comparisons are not what the translations give; run diet-mt compare again")


def _alike(kept: Comparison | None, found: Comparison) -> bool:
    """Whether they say the same, but for ties and the last digits, which another processor's
    arithmetic may decide otherwise, SacreBLEU's version, and half widths, which older ones lack.
    """
    if kept is None:
        return False

    def exact(row: Comparison) -> tuple[object, ...]:
        return row.test_set, row.direction, row.system, row.seeds, without_version(row.signature)

    def numbers(row: Comparison) -> dict[str, float]:
        return {"BLEU": row.bleu, "±": row.bleu_ci, **(row.half_widths if kept.half_widths else {})}

    return (
        exact(kept) == exact(found)
        and _near(kept.p_values, found.p_values, 10 / RESAMPLES)
        and _near(numbers(kept), numbers(found), 0.01)
    )


def _near(kept: Mapping[str, float], found: Mapping[str, float], tolerance: float) -> bool:
    """Whether both have the same entries, no two further apart."""
    return kept.keys() == found.keys() and all(
        abs(value - found[name]) <= tolerance for name, value in kept.items()
    )


def _pairs(each: Group, systems: Sequence[str] | None) -> Iterator[Pair]:
    """The better one first, unless two were named."""
    if not systems:
        yield from combinations(each.lines, 2)
        return
    first, second = ([line for line in each.lines if line.system == name] for name in systems)
    yield from ((one, other) for one in first for other in second if one is not other)


def _resampled(folder: Path, each: Group, references: Sequence[str]) -> Resampled:
    hypotheses = [
        [kept_hypotheses(folder, result, len(references)) for result in line.results]
        for line in each.lines
    ]
    return resample(each.lines, hypotheses, references)


def _show(path: Path, found: Resampled, pairs: Sequence[Pair]) -> None:
    for pair in pairs:
        first, second = pair
        difference, half, p = found.difference(pair)
        text = p_text(p, found.signature)
        seeds = " and ".join(str(len(line.results)) for line in pair)
        print(
            f"{path}\t{first.name}\tto {second.name}\t{number(difference, '+.2f', half)} BLEU"
            f"\tp {text}\tseeds {seeds}",
            flush=True,
        )


def _warn(missing: Counter[str]) -> None:
    """Of pairs without references."""
    for name, count in missing.items():
        print(
            f"warning: none of the references are those of {name}: {count} systems have no p-value",
            file=sys.stderr,
        )
