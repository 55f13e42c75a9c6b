"""A worker, run by the path of this file: ``python diet_mt/bench/process/__main__.py``.

The folder is imported as a package of its own. As a part of ``diet_mt`` it would bring that into
``sys.modules``, and fairseq passes over a --user-dir that is there already.
"""

import importlib
import sys
from pathlib import Path

if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    # Python puts the folder of the program first. Its files are no modules of their own, and its
    # parent is searched for this one import alone: names like ``data`` and ``tasks`` lie there.
    sys.path[0] = str(folder.parent)
    importlib.import_module(folder.name)
    del sys.path[0]
    importlib.import_module(f"{folder.name}.worker").main()
