"""Runs a module of diet_mt.data by itself: ``run.py moses IN_DIR OUT_DIR en de``.

The same as ``python -m diet_mt.data.moses ...``, but without loading the rest of the package: torch
and fairseq take seconds to load, and preparing text needs neither. It also ends when the recipe
that called it is killed.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

# A stand-in for the package: it knows where the modules are, but runs no __init__. It is made here,
# at the top level, because processes that are started afresh for a pool run this file, too.
package = ModuleType("diet_mt")
package.__path__ = [str(Path(__file__).resolve().parent.parent / "diet_mt")]
sys.modules["diet_mt"] = package

if __name__ == "__main__":
    import_module("diet_mt.data.orphans").end_with_parent()
    sys.exit(import_module(f"diet_mt.data.{sys.argv[1]}").main(sys.argv[2:]))
