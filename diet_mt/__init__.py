"""diet_mt: a fairseq plugin for one question: where should position information go?

Importing the package loads neither fairseq nor torch, and changes nothing. With --user-dir, fairseq
imports ``models`` and ``tasks``; either of them imports :mod:`diet_mt.plugin`. Programs without
--user-dir call :func:`register`.
"""

from importlib import import_module
from types import ModuleType

__version__ = "0.1.0"

# Imported on first access.
_PARTS = ("criterions", "encoders", "models", "tasks")


def register() -> None:
    """Registers the plugin's components with fairseq and applies its patches.

    Call it before reading a checkpoint or building a model; a second call does nothing.

    Raises ModuleNotFoundError if fairseq is not installed.
    """
    import_module(f"{__name__}.plugin")


def __getattr__(name: str) -> ModuleType:
    if name in _PARTS:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
