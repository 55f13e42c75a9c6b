"""How far fairseq-train has come, by its log."""

from __future__ import annotations

import re

# As text and as JSON.
_STATUS = re.compile(
    r"train_inner \| epoch 0*(\d+):.*? loss=([\d.]+),.* num_updates=(\d+),"
    r"|train_inner \| \{\"epoch\": (\d+),.*?\"loss\": \"([\d.]+)\",.*?\"num_updates\": \"(\d+)\""
)


def status(log: str, before: str = "starting") -> str:
    """``epoch 3, 1200 updates, loss 4.1``, of the end of a log; ``before`` an update is told."""
    found = _STATUS.findall(log)
    if not found:
        return before
    epoch, loss, updates = [each for each in found[-1] if each]
    return f"epoch {epoch}, {updates} updates, loss {loss}"
