"""What the numbers of a section say, in a sentence or two."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from ..blocks import Grid, number
from ..evaluation.lengths import Estimate
from .charts import Point
from .published import AVERAGE
from .standings import LEVEL, Section, Standing
from .tables import HOLM, Table
from .task_boards import PAPER
from .task_scores import TASK_OF

_MOST_NAMES = 4  # of a cluster


def of_section(section: Section) -> str:
    """The best system, and how many are told apart from the baseline, of those trained as it was.
    Empty where none is measured.
    """
    measured = [
        each
        for each in section.standings
        if each.line and each.name not in section.group.trained_otherwise
    ]
    if not measured:
        return ""
    best = measured[0]
    assert best.line is not None
    if len(measured) == 1:
        return f"{best.name}: {best.line.bleu:.2f} ± {best.half_width:.2f} BLEU."
    found = f"{best.name} has the highest BLEU, {best.line.bleu:.2f}"
    baseline = section.group.baseline
    if baseline is None:
        return f"{found} ± {best.half_width:.2f}."
    if best.line != baseline and best.gain is not None:
        side = "below" if best.gain < 0 else "above"
        found += f", {abs(best.gain):.2f} {side} {baseline.name}{_p(best)}"
    beside = [e.name for e in measured if e.cluster == best.cluster and e != best]
    with_baseline = any(each.line == baseline for each in measured)  # it may be in the cluster
    if best.cluster and with_baseline and len(beside) <= _MOST_NAMES:
        found += f", in a cluster with {_listed(beside)}" if beside else ", in a cluster of its own"
    others = [each for each in measured if each.line != baseline]
    tested = [(each.p_value, each.gain or 0) for each in others if each.p_value is not None]
    if not tested:
        return f"{found}."
    better = sum(p <= LEVEL and gain > 0 for p, gain in tested)
    worse = sum(p <= LEVEL and gain < 0 for p, gain in tested)
    how = f"{HOLM} ≤ {LEVEL}"
    parts = [f"{better} of {len(others)} systems are above {baseline.name} with {how}"]
    for count, said in (
        (worse, "below"),
        (len(tested) - better - worse, "not told apart from it"),
        (len(others) - len(tested), "not tested"),
    ):
        parts += [f"{count} {said}"] if count else []
    return f"{found}. {_listed(parts)}."


def _p(standing: Standing) -> str:
    """In brackets, of the difference to the baseline; empty where it is not known."""
    text = standing.p_text
    return text and (f" ({HOLM} {text})" if text.startswith("≤") else f" ({HOLM} = {text})")


def of_trade(found: Sequence[Point], best: Sequence[Point], good: str) -> str:
    """Which points have the highest BLEU of all that are as far along the horizontal axis.
    ``best``: the ``pareto_front``; ``good``: what far means, such as ``fast``.
    """
    names = [each.name for each in best]
    who = "each has" if len(names) == len(found) else f"only {_listed(names)} have"
    who = f"only {names[0]} has" if len(names) == 1 else who
    return f"Of the {len(found)} measured, {who} more BLEU than all others at least as {good}."


def pareto_front(found: Sequence[Point], *, most: bool) -> list[Point]:
    """The points above all others that are at least as far along, highest first; ranges that meet
    count as equal.
    """
    sign = 1 if most else -1
    kept: list[Point] = []
    reached = -math.inf
    for each in sorted(found, key=lambda point: (-point.y, -sign * point.x)):
        least, greatest = sorted((sign * each.low, sign * each.high))
        if least > reached:
            kept.append(each)
        reached = max(reached, greatest)
    return kept


def of_lengths(best: str, baseline: str, gaps: Sequence[Estimate], buckets: Sequence[str]) -> str:
    """How a difference of BLEU changes from the shortest to the longest sources, beyond chance."""
    about = f"{best} to {baseline}:"
    if all(abs(gap.value) <= gap.half_width for gap in gaps):
        return f"{about} no difference can be told from chance, whatever the length of the source."
    ends = gaps[0], gaps[-1]
    first, last = (number(gap.value, "+.1f", gap.half_width) for gap in ends)
    change, half = ends[1].value - ends[0].value, math.hypot(*(gap.half_width for gap in ends))
    told = "" if abs(change) > half else "; no change with the length can be told"
    return (
        f"{about} {first} BLEU on sources of {buckets[0]} words and {last} on those of "
        f"{buckets[-1]}{told}."
    )


def of_learning(
    found: Sequence[tuple[str, Sequence[tuple[float, float]]]],
) -> tuple[str, tuple[str, ...]]:
    """Lowest and highest after the updates that all have reached, of means over the seeds; and the
    names that are said.
    """
    shared = set.intersection(*({update for update, _ in points} for _, points in found))
    if not shared or len({name for name, _ in found}) < 2:
        return "", ()
    update = max(shared)
    seeds: dict[str, list[float]] = {}
    for name, points in found:
        seeds.setdefault(name, []).append(dict(points)[update])
    values = {name: fmean(each) for name, each in seeds.items()}
    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    said = (
        f"After {update:,.0f} updates the perplexity is lowest with {low} ({values[low]:.1f}) "
        f"and highest with {high} ({values[high]:.1f})."
    )
    return said, (low, high)


def of_where(table: Table) -> str:
    """The range with the encoder and without; empty where either has no value."""
    rows = zip(*(column.cells for column in table[1:]), strict=True)
    outside, inside = ([cell.value for cell in row if cell.text] for row in rows)
    if not outside or not inside:
        return ""
    return f"With positions in the encoder {_range(inside)} BLEU, without {_range(outside)}."


def _range(values: Sequence[Any]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def of_scores(grid: Grid) -> str:
    """Which system of ours is best in how many tasks, by the first column of each."""
    ours = [row for row in grid.rows if not row[0].startswith(PAPER)]
    seen = Counter(row[0] for row in ours)
    names = [row[0] if seen[row[0]] == 1 else f"{row[0]} {row[1]}" for row in ours]
    columns: dict[str, int] = {}
    for place, head in enumerate(grid.heads):
        if grid.numbers[place] and head != AVERAGE:
            columns.setdefault(TASK_OF.get(head, head), place)
    what = "tasks" if columns.keys() <= set(TASK_OF.values()) else "languages"
    best: Counter[str] = Counter()
    ties: list[str] = []
    for head, place in columns.items():
        scores = [float(row[place].split()[0]) if row[place] else -math.inf for row in ours]
        first = [name for name, value in zip(names, scores, strict=True) if value == max(scores)]
        if len(first) == 1:
            best[first[0]] += 1
        else:
            ties.append(f"{_listed(first)} are even in {head}")
    if len(ours) < 2 or len(columns) < 2 or not best:
        return ""
    (leader, most), *others = best.most_common()
    parts = [f"{name} of {count}" for name, count in others]
    rest = f", {_listed(parts)}" if parts else ""
    said = "; ".join(
        [f"{leader} has the highest score of {most} of {len(columns)} {what}{rest}", *ties]
    )
    return f"{said}."


def _listed(parts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]])) if parts else ""
