"""The tables of all measurements, by what their rows hold."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from ..evaluation.json_rows import fields_in
from .machine import read_records

# A field that no other rows have -> the module whose ``table`` they make.
_MODULES = {
    "median": "benchmark",
    "ratio_median": "encoder_cost",
    "peak_bytes": "long_sequences",
    "unpadded": "padding_memory",
    "score_error": "search_parity",
}


def table_of(files: Sequence[Path]) -> str | None:
    """Markdown of these files; None where they hold no measurements.

    Raises UserError where they cannot be read.
    """
    fields = fields_in(files)
    for field, name in _MODULES.items():
        if field in fields:
            module = import_module(f".{name}", __package__)
            return str(module.table(read_records(files, module.KEYS)))
    return None
