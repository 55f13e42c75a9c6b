"""The leaderboard as one static page: tables, pictures, and any two systems compared.

``page.html`` is its template; ``page.js`` sorts and filters tables and shows the precomputed
comparisons. Nothing is loaded from elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from html import escape
from itertools import combinations
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from ..evaluation.curves import LearningCurve
from ..evaluation.groups import BASELINE
from ..evaluation.hypotheses import Sentences
from ..evaluation.json_rows import read_rows
from ..evaluation.records import TaskResult
from .blocks import Block, Column, Markup, html
from .boards import STANDING, content, details, reading
from .pictures import PICTURES, ByLength, by_length, inline, panels_of, plot
from .sections import Section, Standing
from .style import FAMILIES
from .tasks import task_board

_FAMILY: Column[Standing] = Column("family", lambda s: FAMILIES[s.family][0], number=False)
_COLUMNS = [STANDING[0], _FAMILY, *STANDING[1:]]


def page(
    sections: Sequence[Section], tasks: Sequence[TaskResult], counts: Sentences, folders: list[Path]
) -> str:
    """The document; ``folders``: of the rows, with learning curves."""
    parts: list[tuple[str, str, str]] = []  # identifier, heading, content
    times = Counter(section.group.conditions.heading for section in sections)
    every: list[Block] = []
    for number, section in enumerate(sections, start=1):
        conditions = section.group.conditions
        more = f", {conditions.corpus}" if times[conditions.heading] > 1 else ""
        blocks = content(section, _COLUMNS)
        every += blocks
        main = html([*_above(section), *blocks, *_below(section, counts)])
        parts.append((f"group-{number}", conditions.heading + more, main))
    if learning := _learning(folders):
        parts.append(("learning", "Learning curves", learning))
    if board := task_board(tasks):
        parts.append(("tasks", "BERT tasks", html(board)))
    parts.append(("reading", "Legend", html(reading(sections, every))))
    count = len({row.checkpoint_sha256 for each in sections for row in each.group.results})
    about = f"{count} trained models, compared with <em>{BASELINE}</em>." if count else ""
    files = {name: Path(__file__).with_name(f"page.{name}").read_text(encoding="utf-8")
             for name in ("html", "css", "js")}  # fmt: skip
    return Template(files["html"]).substitute(
        title="Leaderboard of position encodings",
        about=about,
        script_hash=base64.b64encode(hashlib.sha256(files["js"].encode()).digest()).decode(),
        style=files["css"],
        script=files["js"],
        contents="".join(f'<li><a href="#{i}">{escape(head)}</a></li>' for i, head, _ in parts),
        main="\n".join(
            f'<section id="{i}" aria-labelledby="{i}-h"><h2 id="{i}-h">{escape(head)}</h2>\n{body}'
            "</section>"
            for i, head, body in parts
        ),
    )


def _above(section: Section) -> list[Block]:
    conditions = section.group.conditions
    title = section.group.title.removeprefix(conditions.heading).lstrip(", ")
    figure = panels_of("intervals", [(section, section.standings)], titles=False)
    return [Markup(f'<p class="note">{escape(title)}</p>'), Markup(_figure(figure, "BLEU"))]


def _below(section: Section, counts: Sentences) -> list[Block]:
    """Pictures, the comparison of two systems, and details."""
    blocks: list[Block] = []
    if lengths := by_length(section, counts):
        figure = panels_of("lengths", [(section, lengths)], titles=False)
        blocks.append(Markup(_figure(figure, PICTURES["lengths"].title)))
    if pairs := pairs_of(section, lengths):
        data = json.dumps(pairs, ensure_ascii=False, separators=(",", ":"))
        data = data.replace("<", "\\u003c")
        script = f'<script type="application/json">{data}</script>'
        heading = "<h3>Two systems compared</h3>"
        blocks.append(Markup(f'<div class="pair" hidden>{heading}{script}</div>'))
    return [*blocks, *details(section)]


def _figure(figure: Any, caption: str) -> str:
    return (
        f'<figure><div class="wide" role="region" aria-label="{escape(caption)}" tabindex="0">'
        f"{inline(figure, caption)}</div><figcaption>{escape(caption)}</figcaption></figure>"
    )


def pairs_of(section: Section, lengths: ByLength | None) -> dict[str, Any] | None:
    """Every pair of counted systems of a section, for the page's script.

    ``pairs``: of systems 0 and 1, 0 and 2, ..., 1 and 2, ... the difference of BLEU, half of its
    95 % interval, p, and for each of ``parts`` a difference and half of its interval; ``first``:
    the two shown at first. None for fewer than two systems.
    """
    tests = section.tests
    lines = [line for line in section.group.lines if tests and line in tests.lines]
    if not tests or len(lines) < 2:
        return None
    pairs = []
    for one, other in combinations(range(len(lines)), 2):
        difference, half, p = tests.difference(lines[one], lines[other])
        row = [round(difference, 2), round(half, 2), round(p, 4)]
        if lengths:
            samples = lengths.samples[one] - lengths.samples[other]  # (parts, 1,000)
            low, high = np.percentile(samples, (2.5, 97.5), axis=1)
            gaps = lengths.bleu[one] - lengths.bleu[other]
            for gap, width in zip(gaps, (high - low) / 2, strict=True):
                row += [round(float(gap), 1), round(float(width), 1)]
        pairs.append(row)
    baseline = section.group.baseline
    parts = lengths.parts if lengths else []
    return {
        "systems": [line.name for line in lines],
        "parts": [f"{part.name} ({len(part.members)})" for part in parts],
        "pairs": pairs,
        "first": [0, (lines.index(baseline) if baseline in lines else 1) or 1],
    }


def _learning(folders: Sequence[Path]) -> str:
    """Perplexity by file: ``curves/multi30k.jsonl`` is multi30k, ``mlm/curves.jsonl`` mlm."""
    figures = []
    for folder in folders:
        for path in sorted([*folder.glob("curves/*.jsonl"), *folder.glob("*/curves.jsonl")]):
            name = path.parent.name if path.stem == "curves" else path.stem
            curves = [each for each in read_rows(LearningCurve, path) if each.finite("perplexity")]
            if len({each.system for each in curves}) > 1:
                drawn = plot(curves, "perplexity", markers=False)
                figures.append(_figure(drawn, f"Validation perplexity, {name}"))
    return "".join(figures)
