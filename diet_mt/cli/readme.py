"""Generated sections of a Markdown file, each between two lines such as

<!-- results:begin -->
<!-- results:end -->
"""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import UserError
from ..records import write_text


def with_section(text: str, name: str, section: str) -> str:
    """``text`` with ``section`` between its markers. Raises UserError without exactly one pair."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    pattern = re.compile(f"^{begin}$.*?^{end}$", re.DOTALL | re.MULTILINE)
    if text.count(begin) != 1 or text.count(end) != 1 or not pattern.search(text):
        raise UserError(f"it needs the lines '{begin}' and '{end}', once and in this order")
    return pattern.sub(lambda _: f"{begin}\n\n{section.rstrip()}\n\n{end}", text)


def put_section(file: Path | None, name: str, section: str, check: bool) -> None:
    """Rewrites the section ``name`` of ``file``, or prints it where there is no file.

    ``check``: writes nothing. Raises UserError if the section is not ``section``, or as
    ``with_section``.
    """
    if file is None:
        print(section, end="")
        return
    try:
        old = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: cannot be read ({error})") from None
    try:
        new = with_section(old, name, section)
    except UserError as error:
        raise UserError(f"{file}: {error}") from None
    if check and new != old:
        raise UserError(
            f"{file}: its section '{name}' is not made from these files; "
            "run the same command without --check"
        )
    if new != old:
        write_text(file, new)
