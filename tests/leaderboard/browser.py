"""Chromium without a window, spoken to over two pipes in its DevTools protocol.

https://chromedevtools.github.io/devtools-protocol/ lists the methods. With the flag for pipes each
message is JSON and a zero byte; the browser reads file descriptor 3 and writes 4.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
PATIENCE = 60.0  # seconds for one answer: other tests run beside this one


def find_chromium() -> str | None:
    """The program that the variable CHROMIUM names, else a usual one on the PATH."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One running Chromium; ``events`` are all messages that were not answers."""

    def __init__(self, program: str, folder: Path) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # Out of the way of 3 and 4, which the shell gives them as names.
        given = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]
        os.close(to_browser)
        os.close(from_browser)
        command = f'exec "$@" 3<&{given[0]} 4>&{given[1]}'
        options = [*FLAGS, f"--user-data-dir={folder}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", command, "bash", program, *options],
            pass_fds=given,
            env={**os.environ, "HOME": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in given:
            os.close(end)
        self._rest = b""
        self._last = 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._write)  # without its pipe the browser ends
        os.close(self._read)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def call(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        """The answer to one message. Raises RuntimeError for an error or none in time."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._next(deadline)
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]  # type: ignore[no-any-return]
            self.events.append(answer)

    def wait_for(self, method: str, session: str) -> None:
        """Until such an event has come; it is taken out of ``events``."""
        deadline = time.monotonic() + PATIENCE
        while True:
            for event in self.events:
                if event.get("method") == method and event.get("sessionId") == session:
                    self.events.remove(event)
                    return
            self.events.append(self._next(deadline))

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            block = os.read(self._read, 1 << 16) if ready else b""
            if not block:
                raise RuntimeError("Chromium does not answer" if not ready else "Chromium ended")
            self._rest += block
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)  # type: ignore[no-any-return]


class Tab:
    """One page in a screen of its own; ``close`` it after use."""

    def __init__(
        self,
        browser: Browser,
        file: Path,
        *,
        width: int,
        height: int,
        scheme: str = "light",
        scripts: bool = True,
    ) -> None:
        self._browser = browser
        self._target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=self._target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **screen)
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=media)
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        browser.events.clear()
        self.call("Page.navigate", url=file.as_uri())
        browser.wait_for("Page.loadEventFired", self._session)

    def __enter__(self) -> Tab:
        return self

    def __exit__(self, *error: object) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def value(self, expression: str) -> Any:
        """Of a JavaScript expression. Raises RuntimeError where it fails."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """With the mouse, in the middle of the first such element, scrolled into sight."""
        x, y = self.value(
            f"(() => {{ const it = document.querySelector({json.dumps(selector)});"
            "it.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});"
            "const box = it.getBoundingClientRect();"
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            event = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", **event)

    def press_enter(self) -> None:
        """On what has the focus."""
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
        self.call("Input.dispatchKeyEvent", type="keyDown", **key)
        self.call("Input.dispatchKeyEvent", type="keyUp", **key)

    def picture(self, file: Path, whole: bool = False) -> bytes:
        """A PNG of the screen, or of the whole page, written to ``file``."""
        options: dict[str, Any] = {"format": "png"}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            options |= {"captureBeyondViewport": True, "clip": {**size, "scale": 1}}
        data = base64.b64decode(self.call("Page.captureScreenshot", **options)["data"])
        file.write_bytes(data)
        return data

    @property
    def complaints(self) -> list[dict[str, Any]]:
        """What the page's console shows, and requests to anything but its own file."""
        wrong = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        own = [event for event in self._browser.events if event.get("sessionId") == self._session]
        return [
            event
            for event in own
            if event["method"] in wrong
            or (
                event["method"] == "Network.requestWillBeSent"
                and not event["params"]["request"]["url"].startswith("file:")
            )
        ]
