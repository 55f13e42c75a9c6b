"""Generated files and generated sections of Markdown files, between two lines such as

<!-- results:begin -->
<!-- results:end -->

The first line may hold the command: <!-- results:begin diet-mt leaderboard --brief ... -->
"""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import UserError
from ..files import write_text


def with_section(text: str, name: str, section: str) -> str:
    """``text`` with ``section`` between its markers.

    Raises UserError without exactly one pair of markers, or with markers inside the section.
    """
    begin, end = f"<!-- {name}:begin", f"<!-- {name}:end -->"
    pattern = rf"(^<!-- {name}:begin(?: [^\n]*?)? -->$).*?(^<!-- {name}:end -->$)"
    match = re.search(pattern, text, re.DOTALL | re.MULTILINE)
    if text.count(begin) != 1 or text.count(end) != 1 or not match:
        raise UserError(f"needs one line '{begin} -->' and, below, one line '{end}'")
    if begin in section or end in section:
        raise UserError(f"the new section contains '{begin} -->' or '{end}'")
    return f"{text[: match.end(1)]}\n\n{section.rstrip()}\n\n{text[match.start(2) :]}"


def put_section(file: Path, name: str, section: str, check: bool) -> None:
    """Rewrites a section of ``file``; ``check``: as in ``put_text``. Raises UserError."""
    try:
        new = with_section(_read(file), name, section)
    except UserError as error:
        raise UserError(f"{file}: {error}") from None
    put_text(file, new, check)


def put_text(file: Path, text: str, check: bool) -> None:
    """Writes ``file``; ``check``: only compares. Raises UserError where it differs."""
    same = file.exists() and _read(file) == text
    if not same and check:
        raise UserError(f"{file}: out of date; run diet-mt leaderboard again without --check")
    if not same:
        write_text(file, text)


def _read(file: Path) -> str:
    try:
        with open(file, encoding="utf-8", newline="\n") as opened:
            return opened.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{file}: cannot be read ({reason})") from None
