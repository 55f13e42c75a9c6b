"""Decoding steps captured as CUDA graphs: one launch per step rather than hundreds."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import Any, Callable, ContextManager, Dict, Hashable, List, Optional, Tuple

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..layers.slots import Store

logger = logging.getLogger(__name__)

# Graphs in memory; each has some hundred kernels.
MOST = 256


class Replays:
    """Runs steps over ``store``: the first time in a shape as they are, then from a graph.

    What a step reads and writes from outside has to be in the store or be a parameter, and what it
    does has to depend on ``key`` alone. On a CPU nothing is captured.
    """

    def __init__(self, device: torch.device) -> None:
        self.store = Store(device)
        self.captures = device.type == "cuda"
        self._graphs: Dict[Hashable, Any] = {}
        self._held: Tuple[Any, ...] = ()
        self._moves = 0
        self._stream: Optional[Any] = torch.cuda.Stream(device) if self.captures else None
        self._pool: Any = None

    def begin(self, parameters: List[Tensor], options: Hashable) -> None:
        """Before a run: forgets all graphs where parameters stand elsewhere or options differ.

        The parameters are held, so that no others can take their addresses.
        """
        known, about = self._held[:-1], self._held[-1:]
        same = len(known) == len(parameters) and all(
            one.data_ptr() == other.data_ptr() and one.dtype == other.dtype
            for one, other in zip(known, parameters)  # noqa: B905  # of one length
        )
        if not same or about != (options,):
            self._forget()
            self._held = (*(each.detach() for each in parameters), options)

    def _forget(self) -> None:
        self._graphs.clear()
        self._pool = None  # a pool that no graph has any more takes no new ones

    def __call__(self, key: Hashable, step: Callable[[], None], *, again: bool) -> None:
        """One ``step``; ``again``: there will be more of them with this ``key``."""
        if self.store.moves != self._moves:
            self._forget()
            self._moves = self.store.moves
        graph = self._graphs.get(key)
        if graph is not None:
            graph.replay()
            return
        if self._stream is None:
            step()
            return
        current = torch.cuda.current_stream(self.store.device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            # Also loads kernels and takes work spaces, neither of which a capture may do.
            with kernels_for(self.store.device):
                step()
            if again and self.captures and self.store.moves == self._moves:
                self._capture(key, step)
        current.wait_stream(self._stream)

    def _capture(self, key: Hashable, step: Callable[[], None]) -> None:
        """On the stream that the step ran on. Not by ``torch.cuda.graph``, which empties the cache
        of the allocator each time.
        """
        if len(self._graphs) >= MOST:
            self._forget()
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        torch.cuda.synchronize(self.store.device)
        graph = torch.cuda.CUDAGraph()
        try:
            # Other threads, such as one that pins memory for a loader, may go on.
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            try:
                with kernels_for(self.store.device):
                    step()
            finally:
                graph.capture_end()
        except RuntimeError as error:
            logger.warning("decoding without CUDA graphs: %s", error)
            self.captures = False
            self._forget()
            return
        self._graphs[key] = graph


def kernels_for(device: torch.device) -> ContextManager[object]:
    """The kernels of attention with a mask that need no plan for each new shape."""
    if device.type != "cuda":
        return nullcontext()
    context: ContextManager[object] = sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])
    return context
