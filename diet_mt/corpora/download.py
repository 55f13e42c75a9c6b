"""Downloads that continue where they stopped.

What has come lies beside its place as ``NAME.part``; only the bytes after it are asked for, and
where a server cannot do that, it starts anew. A connection that breaks off is taken up again a few
times. Proxies are those of the environment (``http_proxy``, ``https_proxy``, ``no_proxy``).
"""

from __future__ import annotations

import re
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path

from ..errors import UserError
from ..files import BLOCK
from ..stages.progress import Progress, say

_TIMEOUT = 60  # seconds without any byte
_PAGE = re.compile(rb"\s*<(!doctype html|html)", re.IGNORECASE)
_SENT_A_PAGE = "the server sent a web page, not the file; open the address to see why"


@dataclass(frozen=True)
class Patience:
    """How often a transfer that breaks off is tried, and the seconds before the second try.

    Each further pause is twice as long.
    """

    tries: int = 5
    pause: float = 5.0


class _WrongFile(Exception):
    """The server answers, but with something else: trying again would not help."""


def download(url: str, part: Path, *, size: int | None, patience: Patience) -> None:
    """Appends to ``part`` what it still lacks of ``url``. Raises UserError where the server cannot
    be reached or refuses, sends another file or a web page, or the transfer breaks off for the last
    time; what came is kept and continued next time.

    Args:
        size: Bytes that the whole file must have; None: as many as the server says.
    """
    for attempt in range(patience.tries):
        last = attempt == patience.tries - 1
        try:
            _transfer(url, part, size)
            return
        except _WrongFile as error:
            part.unlink(missing_ok=True)
            raise UserError(f"{url}: {error}") from None
        except urllib.error.HTTPError as error:
            if error.code < 500 or last:
                raise UserError(f"{url}: the server answered {error.code} {error.reason}") from None
            reason: object = f"the server answered {error.code}"
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            if last:
                raise UserError(
                    f"{url}: download failed ({reason}); run again to continue"
                ) from None
        pause = patience.pause * 2**attempt
        say(f"{part.name}: {reason}; trying again in {pause:.0f} s")
        time.sleep(pause)


def _transfer(url: str, part: Path, size: int | None) -> None:
    """Ends without error only when ``part`` is whole."""
    have = part.stat().st_size if part.exists() else 0
    if size is not None and have == size:
        return
    if size is not None and have > size:
        have = 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not have:
            raise
        if size is None:  # nothing lies beyond what we have: it was complete
            return
        raise _WrongFile(
            f"the server's file has no more than {have} bytes, expected {size}"
        ) from None
    with response:
        have = _continues_at(response, have)
        rest = response.headers.get("Content-Length")
        whole = size if rest is None else have + int(rest)
        if response.headers.get_content_type() == "text/html":
            raise _WrongFile(_SENT_A_PAGE)
        if size is not None and whole != size:
            raise _WrongFile(f"the server's file has {whole} bytes, expected {size}")
        _append(response, part, have, whole)


def _continues_at(response: HTTPResponse, have: int) -> int:
    """How many of our bytes the answer builds on: 0 if it starts anew, asked or not."""
    if response.status != 206:
        return 0
    found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    if found is None or int(found[1]) != have:
        raise _WrongFile("the server sent another range than was asked for; run again")
    return have


def _append(response: HTTPResponse, part: Path, have: int, whole: int | None) -> None:
    progress = Progress(part.name.removesuffix(".part"), "MB")
    with open(part, "ab" if have else "wb") as file:
        while block := response.read(BLOCK):
            if not have and not file.tell() and _PAGE.match(block):
                raise _WrongFile(_SENT_A_PAGE)
            try:
                file.write(block)
            except OSError as error:
                raise UserError(f"{part}: cannot be written ({error.strerror})") from None
            progress.add(len(block) / 1e6)
        got = file.tell()
    if whole is not None and got != whole:
        raise OSError(f"{got - have} of {whole - have} bytes arrived")
