"""What the page needs to compare any two systems of a section, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..evaluation.comparisons import mark_of, p_text
from ..evaluation.groups import Line
from .beside import Beside
from .standings import Section
from .views import parts_in


def pairs_of(section: Section, beside: Beside) -> dict[str, Any] | None:
    """``counts``: of each sentence in turn the tokens and the matches of four orders. ``tests``:
    of the difference to each system before. ``first``: the two that are shown before any is chosen.
    None where fewer than two systems are counted.
    """
    kept = beside.sentences
    digest = section.group.conditions.references_sha256
    lines = [line for line in section.group.lines if kept.is_counted(line.results)]
    if len(lines) < 2:
        return None
    texts = kept.texts[digest]
    systems = []
    for line in lines:
        results = []
        for result in line.results:
            counts = kept.counts[result.hypotheses_sha256, digest]
            rows = zip(counts.lengths, *counts.matches, strict=True)
            said = beside.hypotheses[result.hypotheses_sha256, digest]
            results.append(
                {"seed": result.seed, "counts": [n for row in rows for n in row], "texts": said}
            )
        systems.append(
            {"name": line.name, "results": results, "tests": _tests(section, lines, line)}
        )
    baseline = section.group.baseline
    other = lines.index(baseline) if baseline in lines else 1
    return {
        "systems": systems,
        "first": [0, other or 1],
        "references": texts.reference_lengths,
        "parts": [{"name": part.name, "members": part.members} for part in parts_in(section, kept)],
        "shown": {
            "numbers": texts.numbers,
            "sources": texts.sources,
            "references": texts.references,
        },
    }


def _tests(section: Section, lines: Sequence[Line], line: Line) -> list[dict[str, Any]]:
    """Of one of ``lines`` against those before it: half of the interval, and p as text. Nothing
    where they were not compared.
    """
    comparison = next((each.comparison for each in section.standings if each.line == line), None)
    marks = [mark_of(other.results) for other in lines[: lines.index(line)]]
    if comparison is None or not comparison.half_widths.keys() >= set(marks):
        return []
    return [
        {
            "half": comparison.half_widths[mark],
            "p": p_text(comparison.p_values[mark], comparison.signature),
        }
        for mark in marks
    ]
