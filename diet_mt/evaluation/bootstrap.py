"""SacreBLEU's bootstrap, drawn from the same numbers whatever the environment says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

RESAMPLES = 1000  # of the test set
SEED = "12345"  # SacreBLEU's default
_VARIABLE = "SACREBLEU_SEED"


@contextmanager
def fixed_seed() -> Iterator[None]:
    """Within, SacreBLEU draws from SEED. It takes its seed from the environment alone."""
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = SEED
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before
