"""What encoder and decoder share as stacks of fairseq layers."""

from __future__ import annotations

from typing import Any, Dict, List

from fairseq.distributed import fsdp_wrap
from fairseq.modules import FairseqDropout
from fairseq.modules.checkpoint_activations import checkpoint_wrapper
from torch import Tensor, nn

from ..dropout import dropout

# fairseq's dictionary from the encoder to the decoder: lists of tensors by name.
EncoderOut = Dict[str, List[Any]]


def wrap_layer(layer: nn.Module, cfg: Any) -> nn.Module:
    """Activation checkpointing and FSDP around a layer, where ``cfg`` asks, as fairseq does it."""
    if cfg.checkpoint_activations:
        layer = checkpoint_wrapper(layer, offload_to_cpu=cfg.offload_activations)
    return fsdp_wrap(
        layer, min_num_params=0 if cfg.checkpoint_activations else cfg.min_params_to_wrap
    )


def layer_numbers(layers: nn.ModuleList) -> Dict[nn.Module, int]:
    """The number of each layer; iterating, as layer drop leaves some out, would miscount them."""
    return {layer: number for number, layer in enumerate(layers.children())}


class Dropout(FairseqDropout):
    """fairseq's dropout with the cheaper random numbers of :func:`diet_mt.dropout.dropout`."""

    def forward(self, x: Tensor, inplace: bool = False) -> Tensor:
        return dropout(x, self.p) if self.active else x

    @property
    def active(self) -> bool:
        """Whether anything is dropped: in training, or as --retain-dropout wants it."""
        return bool(self.p > 0 and (self.training or self.apply_during_inference))


def replace_dropout(owner: nn.Module, name: str) -> None:
    """Puts ours in the place of fairseq's dropout among the direct children of ``owner``.

    ``name`` is fairseq's own class of ``owner``, by which --retain-dropout-modules calls them.
    """
    for attribute, module in list(owner.named_children()):
        if isinstance(module, FairseqDropout):
            setattr(owner, attribute, Dropout(module.p, module_name=name))
