"""Python imports this by itself: it kills the whole run at a chosen file (see runner.killed_at)."""

from __future__ import annotations

import os
import signal
import sys

_EVENT, _, _END = os.environ.get("KILL_AT", "").partition(":")


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if event == _EVENT and str(arguments[0]).endswith(_END):
        os.killpg(os.getpgrp(), signal.SIGKILL)


if _END:
    sys.addaudithook(_hook)
