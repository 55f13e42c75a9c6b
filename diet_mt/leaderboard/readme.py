"""Files that a command makes or checks; and generated sections, between two lines such as

<!-- results:begin -->
<!-- results:end -->
"""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import UserError
from ..files import write_text


def with_section(text: str, name: str, section: str) -> str:
    """``text`` with ``section`` between its markers. Raises UserError without exactly one pair,
    or with another in the section.
    """
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    pattern = re.compile(f"^{begin}$.*?^{end}$", re.DOTALL | re.MULTILINE)
    if text.count(begin) != 1 or text.count(end) != 1 or not pattern.search(text):
        raise UserError(f"it needs the lines '{begin}' and '{end}', once and in this order")
    if begin in section or end in section:  # the next time, nobody would know where it ends
        raise UserError(f"what is to stand there has the lines '{begin}' or '{end}' in it")
    return pattern.sub(lambda _: f"{begin}\n\n{section.rstrip()}\n\n{end}", text)


def put_section(file: Path, name: str, section: str, check: bool) -> None:
    """Rewrites the section ``name`` of ``file``.

    ``check``: writes nothing. Raises UserError if the section is not ``section``, or as
    ``with_section``.
    """
    try:
        new = with_section(_read(file), name, section)
    except UserError as error:
        raise UserError(f"{file}: {error}") from None
    _put(file, new, check, f"its section '{name}'")


def put_text(file: Path, text: str, check: bool) -> None:
    """Writes ``file``. ``check``: writes nothing; raises UserError if it is not ``text``."""
    _put(file, text, check, "it")


def _read(file: Path) -> str:
    try:
        with open(file, encoding="utf-8", newline="\n") as opened:
            return opened.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot be read ({getattr(error, 'strerror', None) or error})") from None


def _put(file: Path, text: str, check: bool, what: str) -> None:
    try:
        same = file.exists() and _read(file) == text
        if not same and not check:
            write_text(file, text)
    except (OSError, UserError) as error:
        raise UserError(f"{file}: cannot be written ({error})") from None
    if not same and check:
        raise UserError(
            f"{file}: {what} is not made from these files; make it anew with diet-mt leaderboard"
        )
