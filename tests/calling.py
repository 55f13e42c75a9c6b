"""``diet-mt`` within the process of the test."""

from __future__ import annotations

from diet_mt.cli.main import main


def called(*words: object) -> int:
    """The status of ``diet-mt WORDS``."""
    try:
        return main([str(word) for word in words])
    except SystemExit as stop:
        return int(stop.code or 0)
