"""Pictures of a section beside its intervals: quality against cost, by length, while learning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from ..evaluation.curves import LearningCurve
from ..evaluation.groups import BASELINE, Line
from ..evaluation.lengths import Part, difference, parts_of
from ..evaluation.resampling import Floats, bleu
from ..evaluation.sentences import Kept
from . import findings
from .beside import Beside
from .charts import Curve, Point, curves, points
from .families import family_of
from .scales import Scale
from .standings import Section

_BUCKETS = 5  # of lengths
_NEAR = 2  # times the best perplexity
LEAST = 3  # points or lines that make a picture
_SIDES = (0.09, 0.06)  # for the numbers of the vertical axis
_ENDS = (0.07, 0.33)  # also for the names at the ends of lines


@dataclass(frozen=True)
class View:
    """``content``: SVG; ``axes``: what they are; ``corpus``: of trainings, what they saw;
    ``numbers``: the same as text, a line for each mark.
    """

    title: str
    finding: str
    axes: str
    content: str
    corpus: str = ""
    numbers: Sequence[str] = ()


def by_speed(section: Section, beside: Beside) -> View | None:
    """BLEU against the speed that the side-by-side benchmark measured, where there is one."""
    conditions = section.group.conditions
    speeds = beside.speeds.get((conditions.size, conditions.corpus))
    found = []
    for line in section.group.lines:
        speed = speeds.of(line) if speeds else None
        if speed:
            around = speed.low, speed.high
            said = f"{speed.median:.0f} sentences/s ({speed.low:.0f}–{speed.high:.0f})"
            found.append(replace(_point(line, speed.median, said), around=around))
    if speeds is None or len(found) < LEAST:
        return None
    axes = (
        "BLEU against sentences a second, median and quartiles, which tell two speeds apart where "
        f"they do not overlap: {speeds.where}"
    )
    return _trade("Quality and speed", axes, found, "fast", most=True)


def by_parameters(section: Section, beside: Beside) -> View | None:
    found = []
    for line in section.group.lines:
        count = max(result.parameters for result in line.results)
        found.append(_point(line, count, f"{count:,} parameters"))
    if len(found) < LEAST or len({each.x for each in found}) < 2:
        return None
    return _trade("Quality and size", "BLEU against parameters", found, "small", most=False)


def _point(line: Line, x: float, said: str) -> Point:
    family = family_of(line.results[0].positions)
    said = f"{line.name}: {line.bleu:.2f} BLEU, {said}"
    return Point(line.name, family, x, line.bleu, said, line.system == BASELINE)


def _trade(title: str, axes: str, found: Sequence[Point], good: str, *, most: bool) -> View:
    best = findings.pareto_front(found, most=most)
    shown = [replace(each, important=each.important or each in best) for each in found]
    x = Scale([end for each in found for end in (each.low, each.high)], margin=_SIDES)
    y = Scale([each.y for each in found])
    said = findings.of_trade(found, best, good)
    return View(title, said, axes, points(shown, x, y), numbers=[each.said for each in found])


def parts_in(section: Section, kept: Kept) -> list[Part]:
    """The test set by the lengths of its sources; nothing where these are not known."""
    texts = kept.texts.get(section.group.conditions.references_sha256)
    lengths = texts.source_lengths if texts else []
    return parts_of(lengths, count=_BUCKETS) if lengths else []


def by_length(section: Section, beside: Beside) -> View | None:
    """BLEU by the length of the source, mean of the seeds."""
    kept = beside.sentences
    parts = parts_in(section, kept)
    lines = [line for line in section.group.lines if kept.is_counted(line.results)]
    if len(parts) < 2 or len(lines) < 2:
        return None

    # Of each seed, (sentences, 10).
    statistics = {line.name: [kept.statistics(result) for result in line.results] for line in lines}

    def seeds(line: Line, part: Part) -> list[Floats]:
        """Of the sentences of a part alone."""
        return [each[list(part.members)] for each in statistics[line.name]]

    found = []
    for line in lines:
        values = [
            fmean(float(bleu(each.sum(axis=0))) for each in seeds(line, part)) for part in parts
        ]
        curve = [(float(number), value) for number, value in enumerate(values)]
        said = ", ".join(f"{value:.1f}" for value in values)
        strong = line in (lines[0], lines[-1]) or line.system == BASELINE
        family = family_of(line.results[0].positions)
        found.append(Curve(line.name, family, curve, f"{line.name}: {said}", strong))
    # Evenly: by their mean lengths the names of narrow buckets would meet on a phone.
    x = Scale(range(len(parts)), margin=_ENDS)
    y = Scale([value for each in found for _, value in each.points])
    names = [part.name for part in parts]
    ticks = [(float(number), name) for number, name in enumerate(names)]
    alike = [line for line in lines if line.name not in section.group.trained_otherwise]
    best = (alike or lines)[0]
    baseline = section.group.baseline if section.group.baseline in lines else best
    said = ""
    if baseline is not best:
        gaps = [difference(seeds(best, part), seeds(baseline, part)) for part in parts]
        said = findings.of_lengths(best.name, baseline.name, gaps, names)
    counts = ", ".join(str(len(part.members)) for part in parts)
    axes = f"BLEU by words of the source, in buckets of {counts} sentences"
    drawn = curves(found, x, y, ticks)
    return View("Short and long sentences", said, axes, drawn, numbers=[e.said for e in found])


# By the names that ``--picture`` takes.
VIEWS: Mapping[str, Callable[[Section, Beside], View | None]] = {
    "speed": by_speed,
    "parameters": by_parameters,
    "lengths": by_length,
}


def of_learning(name: str, trainings: Sequence[LearningCurve]) -> View | None:
    """Validation perplexity by updates, from where the first training comes near the best; None for
    trainings of one system. Seeds of a system have one name.
    """
    if len({each.system for each in trainings}) < 2:
        return None
    known = [(each, each.finite("perplexity")) for each in trainings]
    best = min(own[-1][1] for _, own in known)
    begin = min(update for _, own in known for update, value in own if value <= _NEAR * best)
    said, named = findings.of_learning([(each.what, own) for each, own in known])
    found = [
        Curve(
            each.what,
            family_of(each.system),
            [point for point in own if point[0] >= begin] or own[-1:],
            f"{each.what}, seed {each.seed}: {own[-1][1]:.1f} in the end",
            each.what in named or each.what == BASELINE,
        )
        for each, own in known
    ]
    every = [point for each in found for point in each.points]
    x = Scale([update for update, _ in every], margin=_ENDS)
    y = Scale([value for _, value in every])
    ranked = sorted(found, key=lambda each: (not each.important, each.points[-1][1]))
    first = {each.name: each for each in reversed(ranked)}
    shown = [each if each is first[each.name] else replace(each, name="") for each in found]
    axes = f"Perplexity against updates, from {begin:,.0f} on; a line for each seed"
    data = Path(trainings[0].settings.get("data", ""))
    corpus = data.parent.name if data.name == "bin" else data.name
    title, numbers = f"Validation perplexity, {name}", [each.said for each in ranked]
    return View(title, said, axes, curves(shown, x, y), corpus, numbers)
