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

MAX_GRAPHS = 256  # in memory at a time; each launches some hundred kernels


class Replays:
    """Runs decoding steps: the first one of each shape eagerly, further ones from a CUDA graph.

    A step may read and write only parameters and tensors of ``store``, and its kernels may depend
    only on its key. On a CPU nothing is captured.
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
        """Prepares a run: discards all graphs if parameters have moved or ``options`` differ.

        The references held here prevent other tensors from taking the addresses of parameters.
        """
        known, about = self._held[:-1], self._held[-1:]
        same = len(known) == len(parameters) and all(
            one.data_ptr() == other.data_ptr() and one.dtype == other.dtype
            for one, other in zip(known, parameters)  # noqa: B905  # of one length
        )
        if not same or about != (options,):
            self._discard()
            self._held = (*(each.detach() for each in parameters), options)

    def _discard(self) -> None:
        self._graphs.clear()
        self._pool = None  # a memory pool whose graphs are gone accepts no new ones

    def __call__(self, key: Hashable, step: Callable[[], None], *, again: bool) -> None:
        """Runs ``step``, or replays the graph of ``key``.

        ``again``: whether more steps with this key follow, so that a capture is worth its time.
        """
        if self.store.moves != self._moves:
            self._discard()
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
            # The eager step also loads kernels and allocates workspaces, which a capture must not.
            with kernels_for(self.store.device):
                step()
            if again and self.captures and self.store.moves == self._moves:
                self._capture(key, step)
        current.wait_stream(self._stream)

    def _capture(self, key: Hashable, step: Callable[[], None]) -> None:
        """Captures ``step`` on the current stream.

        ``torch.cuda.graph`` would empty the allocator's cache at every capture.
        """
        if len(self._graphs) >= MAX_GRAPHS:
            self._discard()
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        torch.cuda.synchronize(self.store.device)
        graph = torch.cuda.CUDAGraph()
        try:
            # Other threads, such as one that pins memory for a data loader, may continue.
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            try:
                with kernels_for(self.store.device):
                    step()
            finally:
                graph.capture_end()
        except RuntimeError as error:
            logger.warning("decoding without CUDA graphs: %s", error)
            self.captures = False
            self._discard()
            return
        self._graphs[key] = graph


def kernels_for(device: torch.device) -> ContextManager[object]:
    """Context with attention kernels that support masks and need no plan for each new shape."""
    if device.type != "cuda":
        return nullcontext()
    context: ContextManager[object] = sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])
    return context
