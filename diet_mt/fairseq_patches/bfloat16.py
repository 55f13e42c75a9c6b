"""``--bf16`` for a GPU or CPU.

fairseq computes in bfloat16 wherever torch does, but its command line takes ``--bf16`` to mean a
TPU as well, and stops without ``torch_xla``; only ``fairseq-hydra-train`` does not. Between the
parsing and the use of an option there is no hook, so the function that turns parsed options into a
configuration, ``fairseq.dataclass.utils.override_module_args``, is replaced by one that calls it.
"""

from __future__ import annotations

import functools
from importlib.util import find_spec
from typing import Any, Callable

from fairseq.dataclass import utils


def without_tpu(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``convert(args)`` where bfloat16 means a TPU only if ``torch_xla`` is there to drive one."""

    @functools.wraps(convert)
    def wrapped(args: Any) -> Any:
        if getattr(args, "bf16", False) and find_spec("torch_xla") is None:
            args.tpu = False
        return convert(args)

    return wrapped


utils.override_module_args = without_tpu(utils.override_module_args)
