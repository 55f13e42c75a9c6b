"""diet_mt: a fairseq plugin for one question: where should position information go?

Importing the package is light: it loads neither fairseq nor torch, and changes nothing. fairseq
imports ``models`` and ``tasks`` of a --user-dir by itself, and either brings all of
:mod:`diet_mt.plugin`. A program that has not named a --user-dir calls :func:`register`.
"""

from importlib import import_module
from types import ModuleType

__version__ = "0.1.0"

# Imported on first access.
_PARTS = ("criterions", "encoders", "models", "tasks")


def register() -> None:
    """Registers the plugin's components with fairseq and applies its patches.

    To be called before a checkpoint is read or anything built; a second call does nothing.

    Raises ModuleNotFoundError where fairseq is not installed.
    """
    import_module(f"{__name__}.plugin")


def __getattr__(name: str) -> ModuleType:
    if name in _PARTS:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
