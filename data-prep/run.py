"""Runs a module of diet_mt: ``run.py corpora.moses IN_DIR OUT_DIR en de``.

The same as ``python -m diet_mt.corpora.moses ...`` from anywhere; it also ends when the recipe that
called it is killed.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

# This checkout's, whatever is installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

if __name__ == "__main__":
    import_module("diet_mt.stages.orphans").end_with_parent()
    sys.exit(import_module(f"diet_mt.{sys.argv[1]}").main(sys.argv[2:]))
