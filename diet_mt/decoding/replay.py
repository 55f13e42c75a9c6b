"""Decoding steps captured as CUDA graphs: one launch per step rather than hundreds."""

from __future__ import annotations

import logging
from typing import Any, Callable, Dict, Hashable, List, Optional

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..layers.slots import Store

logger = logging.getLogger(__name__)

# Attention kernels that support masks and need no plan for each new shape.
KERNELS = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
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
        self._held: List[Tensor] = []
        self._setting: Any = None
        self._moves = 0
        self._stream: Optional[Any] = torch.cuda.Stream(device) if self.captures else None
        self._pool: Any = None

    def begin(self, parameters: List[Tensor], options: Hashable) -> None:
        """Prepares a run: discards all graphs if parameters have moved or ``options`` differ.

        The references held here prevent other tensors from taking the addresses of parameters.
        """
        setting = [(each.data_ptr(), each.dtype) for each in parameters], options
        if setting != self._setting:
            self._discard()
            self._held, self._setting = [each.detach() for each in parameters], setting

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
            with sdpa_kernel(KERNELS):
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
                with sdpa_kernel(KERNELS):
                    step()
            finally:
                graph.capture_end()
        except RuntimeError as error:
            logger.warning("decoding without CUDA graphs: %s", error)
            self.captures = False
            self._discard()
            return
        self._graphs[key] = graph
