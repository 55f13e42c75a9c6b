"""The leaderboard as one static page; ``page.html`` is its template."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ..evaluation.groups import BASELINE
from .boards import EVALUATIONS, FOLDED
from .commands import commands
from .notes import legend, remarks, signatures
from .picture import picture
from .render import Block
from .standings import Section
from .tables import evaluations_table, rows, standings_table

_BESIDE = Path(__file__).parent


def page(sections: Sequence[Section], tasks: Sequence[Block] = ()) -> str:
    """The whole document. The same results give the same bytes: nothing in it is of today."""
    style = (_BESIDE / "page.css").read_text(encoding="utf-8")
    script = (_BESIDE / "page.js").read_text(encoding="utf-8")
    parts = (commands, evaluations_table, legend, picture, remarks, rows, signatures)
    environment = Environment(
        loader=FileSystemLoader(_BESIDE),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    return environment.get_template("page.html").render(
        {part.__name__: part for part in (*parts, standings_table)},
        title="Leaderboard of position encodings" if tasks else "BLEU leaderboard",
        baseline=BASELINE,
        count=sum(len(section.group.results) for section in sections),
        evaluations=EVALUATIONS,
        folded=FOLDED,
        policy=_policy(style, script),
        script=script,
        sections=sections,
        style=style,
        tasks=tasks,
    )


def _policy(style: str, script: str) -> str:
    """Nothing is loaded, and no style or script runs but the page's own two."""

    def source(text: str) -> str:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        return f"'sha256-{digest}'"

    return f"default-src 'none'; style-src {source(style)}; script-src {source(script)}"
