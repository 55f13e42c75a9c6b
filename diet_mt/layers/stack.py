"""What encoder and decoder share as stacks of fairseq layers."""

from __future__ import annotations

from typing import Any, Dict, List

from fairseq.distributed import fsdp_wrap
from fairseq.modules import FairseqDropout
from fairseq.modules.checkpoint_activations import checkpoint_wrapper
from torch import nn

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


def name_dropout(name: str, *modules: FairseqDropout) -> None:
    """Names the dropout of a subclass by fairseq's own class, as --retain-dropout-modules does."""
    for module in modules:
        module.module_name = name
