"""The leaderboard as one static page; ``page.html`` is its template."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ..blocks import Block, Commands, Grid
from ..evaluation.groups import BASELINE
from . import findings, heat, views
from .beside import Beside
from .boards import EVALUATIONS, FOLDED, commands, legend, remarks, signatures
from .families import FAMILIES, family_of, family_of_standing
from .pairs import pairs_of
from .picture import axis, grid, marks, scale_of
from .standings import Section
from .tables import Cell, Column, Table, evaluations_table, rows, standings_table
from .task_boards import PAPER
from .where import where_they_act

_BESIDE = Path(__file__).parent
_STYLES = ("marks.css", "page.css")
# In this order one script.
_SCRIPTS = ("tables.js", "statistics.js", "two.js")


@dataclass(frozen=True)
class Shown:
    """A section, with what was worked out for it. ``pairs``: None where no two can be compared."""

    section: Section
    families: Sequence[str]  # of its standings
    table: Table
    finding: str
    views: Sequence[views.View]
    pairs: dict[str, Any] | None


def page(
    sections: Sequence[Section],
    tasks: Sequence[Block] = (),
    beside: Beside | None = None,
    patterns: Sequence[heat.Patterns] = (),
    files: Sequence[str] = (),
) -> str:
    """The whole document. The same results give the same bytes: nothing in it is of today.

    ``files``: of the rows, as seen from the page.
    """
    beside = beside or Beside()
    style = "".join((_BESIDE / name).read_text(encoding="utf-8") for name in _STYLES)
    script = "".join((_BESIDE / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    parts = (
        findings.of_scores,
        findings.of_where,
        axis,
        commands,
        evaluations_table,
        families_in,
        family_of,
        grid,
        legend,
        marks,
        remarks,
        rows,
        scale_of,
        where_they_act,
    )
    environment = Environment(
        loader=FileSystemLoader(_BESIDE),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["minus"] = minus
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    found = [_shown(section, beside) for section in sections]
    families = {family for each in found for family in each.families}
    return environment.get_template("page.html").render(
        {part.__name__: part for part in parts},
        title="Leaderboard of position encodings" if tasks else "BLEU leaderboard",
        baseline=BASELINE,
        count=len(
            {each.checkpoint_sha256 for section in sections for each in section.group.results}
        ),
        evaluations=EVALUATIONS,
        files=[quote(file) for file in files],
        families={name: said for name, said in FAMILIES.items() if name in families},
        folded=FOLDED,
        headings=[section.group.conditions.heading for section in sections],
        found=found,
        learning=[
            view
            for name, trainings in beside.learning.items()
            if (view := views.of_learning(name, trainings))
        ],
        paper=PAPER,
        patterns=patterns,
        patterns_say=heat.finding(patterns),
        policy=_policy(style, script, images=bool(patterns)),
        script=script,
        sections=sections,
        signatures=sorted({fact for section in sections for fact in signatures(section)}),
        style=style,
        task_commands=[block for block in tasks if isinstance(block, Commands)],
        tasks=[block for block in tasks if not isinstance(block, Commands)],
    )


def minus(text: str) -> str:
    """With the sign for the hyphen of a negative number."""
    return re.sub(r"(?<![\w.-])-(?=[\d.])", "−", text)


def families_in(grid: Grid) -> list[str]:
    """Of each row of a board of tasks; a row of the paper stands below that of its system."""
    found: list[str] = []
    for name, *_ in grid.rows:
        found.append(found[-1] if name.startswith(PAPER) and found else family_of(name))
    return found


def _shown(section: Section, beside: Beside) -> Shown:
    families = [family_of_standing(each) for each in section.standings]
    name, *others = standings_table(section)
    words = [FAMILIES[family] for family in families]
    family = Column("family", tuple(Cell(word, word) for word in words), False, False)
    return Shown(
        section,
        families,
        [name, family, *others],
        findings.of_section(section),
        [view for make in views.VIEWS.values() if (view := make(section, beside))],
        pairs_of(section, beside),
    )


def _policy(style: str, script: str, *, images: bool) -> str:
    """Nothing is loaded, and no style or script runs but the page's own two; ``images``: that are
    in the page itself.
    """

    def source(text: str) -> str:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        return f"'sha256-{digest}'"

    own = f"default-src 'none'; style-src {source(style)}; script-src {source(script)}"
    return f"{own}; img-src data:" if images else own
