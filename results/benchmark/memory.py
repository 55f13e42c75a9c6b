"""Peak memory of a training step of base, as live tensors on torch's meta device: no GPU needed.

    python results/benchmark/memory.py diet_rel [fairseq-train options]
    python results/benchmark/memory.py stock

2,048 pairs of 32 and 32 tokens in bf16, a vocabulary of 32,768. Weights, gradients, Adam's state
and all tensors of the step count; workspaces of kernels and fragmentation do not.
"""

import gc
import logging
import sys
import warnings
import weakref
from typing import ClassVar

import operators
import torch
from torch.utils._pytree import tree_iter

from diet_mt import register
from diet_mt.bench.speed import model_words, training_words
from diet_mt.bench.worker import RANDOM_DATA, System
from diet_mt.models.architectures import SIZES


class Memory(operators.Counted):
    """Live bytes of each storage, from its first operator until it is freed."""

    live = peak = 0
    sizes: ClassVar[dict[int, int]] = {}

    def add(self, tensor):
        storage = tensor.untyped_storage()
        address = storage._cdata
        if tensor.device.type == "meta" and address not in Memory.sizes:
            Memory.sizes[address] = storage.nbytes()
            Memory.live += storage.nbytes()
            Memory.peak = max(Memory.peak, Memory.live)
            weakref.finalize(storage, self.remove, address)

    def remove(self, address):
        Memory.live -= Memory.sizes.pop(address)

    def __enter__(self):
        for each in gc.get_objects():
            if isinstance(each, torch.Tensor):
                self.add(each)
        return super().__enter__()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        results = super().__torch_dispatch__(function, types, args, kwargs)
        for each in tree_iter(results):
            if isinstance(each, torch.Tensor):
                self.add(each)
        return results


warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
system, *options = sys.argv[1:]
if system != "stock":
    register()
System.batches = lambda self, split, tokens=None, **_: [self._batch(tokens, 32, 32)]
operators.Counted = Memory
model = model_words(system, SIZES["base"])
words = [RANDOM_DATA, *model, *training_words(0.1), "--max-tokens", "65536", *options]
operators.count(words, "bf16", "meta", 32_768)
print(f"{' '.join([system, *options])}: {Memory.peak / 2**30:.1f} GiB")
