"""The leaderboard as a static page: tables, pictures, and comparisons of any two systems.

``page.html`` is its template; ``page.js`` sorts and filters tables and shows the precomputed
comparisons. The page loads no other files.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from html import escape
from itertools import combinations
from pathlib import Path
from string import Template
from typing import Any

from ..evaluation.groups import BASELINE
from ..evaluation.hypotheses import Sentences
from ..evaluation.json_rows import read_rows
from ..evaluation.records import TaskResult
from .blocks import Block, Column, html, table
from .boards import STANDING, details, intervals, reading
from .curves import LearningCurve, plot
from .lengths import BLEU, Sheet, parts_of, picture
from .sections import Section, Standing
from .style import FAMILIES, drawn
from .tasks import task_board

_FAMILY: Column[Standing] = Column("family", lambda s: FAMILIES[s.family][0], number=False)
_COLUMNS = [STANDING[0], _FAMILY, *STANDING[1:]]
_SUPERFLUOUS = re.compile(  # in SVG: styles set by the page, and attributes without effect
    r"<metadata>.*?</metadata>|<style.*?</style>|<clipPath.*?</clipPath>|<!--.*?-->"
    r'| clip-path="[^"]*"| transform="rotate\(-0 [^"]*"| font-family: [^;"]*;'
    r"| stroke-line\w+: \w+;?",
    re.DOTALL,
)
# In pictures, which repeat few styles thousands of times. Text and JSON contain no < or >.
_STYLE = re.compile(r'(?<= )style="([^"]*)"(?=[^<>]*>)')


def page(
    sections: Sequence[Section], tasks: Sequence[TaskResult], counts: Sentences, folders: list[Path]
) -> str:
    """The HTML document; ``folders``: folders of results, which may contain learning curves."""
    parts: list[tuple[str, str, str]] = []  # identifier, heading, content
    times = Counter(section.group.conditions.heading for section in sections)
    tables: list[Block] = []
    for number, section in enumerate(sections, start=1):
        conditions = section.group.conditions
        more = f", {conditions.corpus}" if times[conditions.heading] > 1 else ""
        tables.append(table(section.standings, _COLUMNS))
        content = _section(section, tables[-1], counts)
        parts.append((f"group-{number}", conditions.heading + more, content))
    if learning := _learning(folders):
        parts.append(("learning", "Learning curves", learning))
    if board := task_board(tasks):
        parts.append(("tasks", "BERT tasks", html(board)))
    parts.append(("reading", "Legend", html(reading(sections, tables))))
    main = "\n".join(
        f'<section id="{i}" aria-labelledby="{i}-h"><h2 id="{i}-h">{escape(head)}</h2>\n{body}'
        "</section>"
        for i, head, body in parts
    )
    styles = {style: f"s{i}" for i, style in enumerate(dict.fromkeys(_STYLE.findall(main)))}
    count = len({row.checkpoint_sha256 for each in sections for row in each.group.results})
    about = f"{count} trained models, compared with <em>{BASELINE}</em>." if count else ""
    files = {name: Path(__file__).with_name(f"page.{name}").read_text(encoding="utf-8")
             for name in ("html", "css", "js")}  # fmt: skip
    return Template(files["html"]).substitute(
        about=about,
        script_hash=base64.b64encode(hashlib.sha256(files["js"].encode()).digest()).decode(),
        style=files["css"] + "".join(f".{name} {{{style}}}\n" for style, name in styles.items()),
        script=files["js"],
        contents="".join(f'<li><a href="#{i}">{escape(head)}</a></li>' for i, head, _ in parts),
        main=_STYLE.sub(lambda match: f'class="{styles[match[1]]}"', main),
    )


def _section(section: Section, standings: Block, counts: Sentences) -> str:
    """HTML of a group: title, pictures, table, comparison of two systems, and details."""
    conditions = section.group.conditions
    title = section.group.title.removeprefix(conditions.heading).lstrip(", ")
    body = [f'<p class="note">{escape(title)}</p>', _figure(intervals(section), "BLEU")]
    body.append(html([standings]))
    sheet, lengths = Sheet("", "words"), counts.texts[conditions.references_sha256].source_lengths
    parts = parts_of(lengths, count=5) if lengths else []
    if len(parts) > 1 and len(section.group.lines) > 1:
        sheet.add(section.group, counts, parts)
        body.append(_figure(picture([sheet]), "Short and long sentences"))
    if pairs := pairs_of(section, sheet):
        data = json.dumps(pairs, ensure_ascii=False, separators=(",", ":"))
        data = data.replace("<", "\\u003c").replace(">", "\\u003e")
        script = f'<script type="application/json">{data}</script>'
        body.append(f'<div class="pair" hidden><h3>Two systems compared</h3>{script}</div>')
    return "\n".join([*body, html(details(section))])


def _figure(figure: Any, caption: str) -> str:
    return (
        f'<figure><div class="wide" role="region" aria-label="{escape(caption)}" tabindex="0">'
        f"{inline(figure, caption)}</div><figcaption>{escape(caption)}</figcaption></figure>"
    )


def pairs_of(section: Section, sheet: Sheet) -> dict[str, Any] | None:
    """Comparisons of all pairs of systems, for the page's script; None for fewer than two systems.

    ``pairs``: for systems 0 and 1, 0 and 2, ..., 1 and 2, ... the difference of BLEU, half of its
    95 % interval, p, and for each of ``parts`` a difference and half of its interval. ``first``:
    the pair shown initially.
    """
    lines, baseline = section.group.lines, section.group.baseline
    if len(lines) < 2:
        return None
    pairs = []
    for one, other in combinations(lines, 2):
        difference, half, p = section.tests.difference(one, other)
        row = [round(difference, 2), round(half, 2), round(p, 4)]
        for part in sheet.parts:
            values = sheet.values[BLEU]
            gap = values[one.name][part.name] - values[other.name][part.name]
            row += [round(gap.value, 1), round(gap.half_width, 1)]
        pairs.append(row)
    return {
        "systems": [line.name for line in lines],
        "parts": [part.head for part in sheet.parts],
        "pairs": pairs,
        "first": [0, (lines.index(baseline) if baseline in lines else 1) or 1],
    }


def _learning(folders: Sequence[Path]) -> str:
    """HTML of learning curves: ``curves/NAME.jsonl`` and ``NAME/curves.jsonl`` of each folder."""
    figures = []
    for folder in folders:
        for path in sorted([*folder.glob("curves/*.jsonl"), *folder.glob("*/curves.jsonl")]):
            name = path.parent.name if path.stem == "curves" else path.stem
            curves = [each for each in read_rows(LearningCurve, path) if each.finite("perplexity")]
            if len({each.system for each in curves}) > 1:
                drawn = plot(curves, "perplexity", markers=False)
                figures.append(_figure(drawn, f"Validation perplexity, {name}"))
    return "".join(figures)


def inline(figure: Any, label: str) -> str:
    """A picture as SVG for HTML, in the font of the page, with tooltips, without background."""
    text = drawn(figure, "svg", transparent=True).decode()
    text = _SUPERFLUOUS.sub("", text[text.index("<svg") :]).replace("xlink:href", "href")
    text = re.sub(r'<g id="t:([^"]*)">', r"<g><title>\1</title>", text)
    text = re.sub(r'="[^"]*"', lambda value: re.sub(r"(\.\d)\d+", r"\1", value[0]), text)
    used = set(re.findall(r"[\"(]#([\w-]+)", text))
    text = re.sub(r' id="([^"]*)"', lambda match: match[0] if match[1] in used else "", text)
    text = re.sub(r"\s+", " ", text)
    for _ in range(4):  # groups of one element
        text = re.sub(r"<g> (<(?:path|use)[^>]*> ?|<text[^>]*>[^<]*</text> )</g> ?", r"\1", text)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*" height="[^"]*"', r"\1", text, count=1)
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)
