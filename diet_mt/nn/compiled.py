"""Graphs of ``torch.compile`` for parts of a training step, and programs of ``torch.export``."""

from __future__ import annotations

import functools
from typing import Any, Callable, TypeVar

import torch
from torch import Tensor

Function = TypeVar("Function", bound=Callable[..., Any])

# Graphs of one function (by precision, by which masks there are) before torch gives up on it.
_VARIANTS = 64

# Whether torch.export traces a program. It serves all sizes, so no branch may depend on a size.
# torch 2.6 lacks this function.
is_exporting: Callable[[], bool] = getattr(torch.compiler, "is_exporting", lambda: False)


def may_read(x: Tensor) -> bool:
    """Whether code may branch on the values of ``x``: on a CPU, outside of compiled graphs.

    On a GPU a branch waits for all kernels launched before, and a compiled graph has no branches.
    """
    return x.device.type == "cpu" and not torch.compiler.is_compiling()


@functools.cache
def compiled(function: Function) -> Function:
    """``function`` as one graph for all shapes of its tensors, compiled at the first call.

    Pass methods of modules unbound: one graph then serves all modules with the same options, such
    as the layers of a stack.
    """
    import torch._dynamo.config as dynamo
    import torch.fx.experimental._config as shapes

    # Sizes that happen to be equal in the first batch are not equal in all.
    shapes.use_duck_shape = False
    limit = "recompile_limit" if hasattr(dynamo, "recompile_limit") else "cache_size_limit"
    setattr(dynamo, limit, max(getattr(dynamo, limit), _VARIANTS))
    graph: Any = torch.compile(function, fullgraph=True, dynamic=True)
    return graph
