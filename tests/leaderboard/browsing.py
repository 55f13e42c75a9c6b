"""A page opened in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SCREENS = {"phone": (360, 740), "desktop": (1440, 900)}


@contextmanager
def opened(browser: Browser, file: Path, screen: str = "desktop", **how: Any) -> Iterator[Page]:
    """A page in a screen of its own. Fails for any request but the first, and for what the console
    shows.
    """
    width, height = SCREENS[screen]
    context = browser.new_context(viewport={"width": width, "height": height}, **how)
    context.set_default_timeout(10_000)  # milliseconds
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: wrong.append(request.url))
    page.goto(file.as_uri())
    yield page
    context.close()
    assert wrong == [file.as_uri()]
