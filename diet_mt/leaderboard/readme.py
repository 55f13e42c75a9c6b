"""Files that a command makes or checks; and generated sections, between two lines such as

<!-- results:begin -->
<!-- results:end -->

The first may say by which command: <!-- results:begin diet-mt leaderboard --brief ... -->
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from ..errors import UserError
from ..files import write_text


def with_section(text: str, name: str, section: str) -> str:
    """``text`` with ``section`` between its markers. Raises UserError without exactly one pair,
    or with another in the section.
    """
    begin, end = f"<!-- {name}:begin", f"<!-- {name}:end -->"
    found = _section(text, name)
    if text.count(begin) != 1 or text.count(end) != 1 or not found:
        raise UserError(f"it needs the lines '{begin} -->' and '{end}', once and in this order")
    if begin in section or end in section:  # the next time, nobody would know where it ends
        raise UserError(f"what is to stand there has the lines '{begin} -->' or '{end}' in it")
    before, after = text[: found.end("begin")], text[found.start("end") :]
    return f"{before}\n\n{section.rstrip()}\n\n{after}"


def _section(text: str, name: str) -> re.Match[str] | None:
    """The first section of this name, with the groups ``begin``, ``command`` and ``end``."""
    begin = rf"(?P<begin>^<!-- {name}:begin(?P<command> [^\n]*?)? -->$)"
    return re.search(rf"{begin}.*?(?P<end>^<!-- {name}:end -->$)", text, re.DOTALL | re.MULTILINE)


def command_of(file: Path, name: str) -> list[str] | None:
    """The words of the command that the section ``name`` of ``file`` says it is made by; none
    where it does not say. None where there is no such section.

    Raises UserError where the file cannot be read, or the command has an open quote.
    """
    try:
        found = _section(_read(file), name)
        return None if found is None else shlex.split(found["command"] or "")
    except (UserError, ValueError) as error:
        raise UserError(f"{file}: {error}") from None


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
    except UserError as error:
        raise UserError(f"{file}: {error}") from None
    if not same and not check:
        write_text(file, text)
    if not same and check:
        raise UserError(
            f"{file}: {what} is not made from these files; make it anew with diet-mt leaderboard"
        )
