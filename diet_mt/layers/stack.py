"""Functions and modules common to encoder and decoder stacks."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from functools import partial
from typing import Any, Callable, Dict, List, Optional, TypeVar

import torch
import torch.nn.functional as F
from fairseq.distributed import fsdp_wrap
from fairseq.modules import FairseqDropout
from fairseq.modules.quantization.scalar.modules import IntEmbedding
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..nn.compiled import compiled
from ..nn.dropout import dropout
from ..positions import REFUSE, AttentionShape, InputPositions

# fairseq's dictionary of encoder outputs: lists of tensors, except ``beams`` (an integer) and
# ``source_positions`` (a range unless positions are randomized).
EncoderOut = Dict[str, List[Any]]

Result = TypeVar("Result")


def input_positions(cfg: Any, longest: int, width: int) -> Optional[InputPositions]:
    """Input positions of a stack for embeddings (``longest``, ``width``), or None."""
    added: Optional[InputPositions] = cfg.encoding.input_positions(longest, width)
    if added is not None:
        added.extrapolation = cfg.beyond_table
        added.can_extrapolate = "decoder" in cfg.stacks  # only translation has --beyond-table
    return added


def longest_sentence(shape: AttentionShape, otherwise: int) -> int:
    """``max_positions`` of a stack, beyond which fairseq skips or rejects sentences."""
    return otherwise if shape.extrapolation == REFUSE else sys.maxsize


def wrap_layer(layer: nn.Module, cfg: Any) -> nn.Module:
    """``layer``, wrapped by fairseq's FSDP if enabled."""
    return fsdp_wrap(
        layer, min_num_params=0 if cfg.checkpoint_activations else cfg.min_params_to_wrap
    )


def compute(layer: Any, forward: Callable[..., Result], x: Tensor, call: Any) -> Result:
    """``forward(x, call)`` of ``layer``, with ``--compile`` and activation checkpointing.

    It is compiled in training only. Non-reentrant checkpointing differentiates through the tensors
    of ``call``, so a bias shared by all layers is computed once, outside of them, as DDP and FSDP
    require for shared parameters.
    """
    compiles = layer.training and getattr(layer.cfg, "compile", False)
    if compiles and not torch.compiler.is_compiling():
        forward = partial(compiled(type(layer)._forward), layer)
    if not (layer.cfg.checkpoint_activations and torch.is_grad_enabled()):
        return forward(x, call)
    keep = torch.autograd.graph.save_on_cpu if layer.cfg.offload_activations else nullcontext
    with keep():
        result: Result = checkpoint(forward, x, call, use_reentrant=False)
        return result


def residual(
    x: Tensor,
    sublayer: Callable[[Tensor], Tensor],
    norm: nn.Module,
    *,
    norm_first: bool,
    drop: nn.Module,
    keep: Optional[Tensor] = None,
) -> Tensor:
    """A sublayer with dropout, a residual connection, and layer norm before or after it.

    ``keep`` (E,): factor of the residual (--scale-resids), or None.
    """
    changed = drop(sublayer(norm(x) if norm_first else x))
    x = x + changed if keep is None else torch.mul(keep, x) + changed
    return x if norm_first else norm(x)


def layer_numbers(layers: nn.ModuleList) -> Dict[nn.Module, int]:
    """The index of each layer, also of those that LayerDrop skips when iterating."""
    return {layer: number for number, layer in enumerate(layers.children())}


class Dropout(FairseqDropout):
    """fairseq's dropout with the cheaper random numbers of ``nn/dropout.py``."""

    def forward(self, x: Tensor, inplace: bool = False) -> Tensor:
        return dropout(x, self.p) if self.active else x

    @property
    def active(self) -> bool:
        """Whether anything is dropped: in training, or with --retain-dropout."""
        return bool(self.p > 0 and (self.training or self.apply_during_inference))


def replace_dropout(owner: nn.Module, name: str) -> None:
    """Replaces fairseq's dropout among the direct children of ``owner`` with :class:`Dropout`.

    ``name``: fairseq's class name of ``owner``, for ``--retain-dropout-modules``.
    """
    for attribute, module in list(owner.named_children()):
        if isinstance(module, FairseqDropout):
            setattr(owner, attribute, Dropout(module.p, module_name=name))


class PaddedEmbedding(nn.Embedding):
    """Token embeddings padded with zeros to the width of the stack, as columns for positions.

    ``weight`` is (V, E') and the output (..., E); ``embedding_dim``, by which fairseq sizes the
    stack, is E.
    """

    @classmethod
    def around(cls, narrow: nn.Embedding, embed_dim: int) -> PaddedEmbedding:
        """A padded embedding with the weights of ``narrow`` (V, E')."""
        count, width = narrow.weight.shape
        wide = cls(count, width, padding_idx=narrow.padding_idx, _weight=narrow.weight.detach())
        wide.embedding_dim = embed_dim
        return wide

    def forward(self, tokens: Tensor) -> Tensor:
        """``tokens`` (...) -> (..., E)."""
        return _padded(super().forward(tokens), self.embedding_dim)


class QuantizedPaddedEmbedding(IntEmbedding):
    """:class:`PaddedEmbedding` under ``--quant-noise-scalar``: fairseq's quantized embedding."""

    def forward(self, tokens: Tensor) -> Tensor:
        """``tokens`` (...) -> (..., E)."""
        return _padded(super().forward(tokens), self.embedding_dim)


def _padded(rows: Tensor, width: int) -> Tensor:
    """``rows`` (..., E') padded with zeros to (..., ``width``)."""
    return F.pad(rows, (0, width - rows.size(-1)))
