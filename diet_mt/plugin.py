"""Registers all components with fairseq, and applies patches and memory settings, on import.

fairseq imports ``models/`` and ``tasks/`` of a --user-dir. These two, ``criterions/`` and
``encoders/`` import this file, so any of them loads the whole plugin.
"""

from importlib.util import find_spec

if find_spec("fairseq") is None:
    raise ModuleNotFoundError(
        "diet_mt is a plugin of fairseq, which is not installed here; see "
        "requirements/fairseq.txt, or run `make setup` in a checkout of diet-mt",
        name="fairseq",
    )

from . import criterions as criterions
from . import encoders as encoders
from . import fairseq_patches as fairseq_patches
from . import models as models
from . import tasks as tasks
from .nn import allocator

allocator.keep_memory()
allocator.limit_shapes()
