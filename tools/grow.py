"""Grows a trained ``tiny`` translation model to ``base``, so that decoding can be timed with a
trained model of that size where nobody can train one from scratch.

    python tools/grow.py checkpoints/diet_rel.1/checkpoint_best.pt diet_rel_base.pt
    fairseq-train … --arch diet_rel_base --finetune-from-model diet_rel_base.pt

The grown model computes what the small one does (Net2Net, Chen et al. 2016, arXiv:1511.05641,
section 2.3): each channel, head and hidden unit is there several times, what reads it is divided
by their number, and layers that add nothing follow the last. Positions added at the input are the
exception: a wider sinusoidal table has other frequencies, to which training has to adapt.
"""

from __future__ import annotations

import argparse
import re
from typing import Any

import torch
from torch import Tensor

import diet_mt
from diet_mt.models._architectures import SIZES

# What the rows and the columns of a linear layer's weights are.
LINEAR = {
    **dict.fromkeys(("q_proj", "k_proj", "v_proj"), ("heads", "channels")),
    "out_proj": ("channels", "heads"),
    "fc1": ("units", "channels"),
    "fc2": ("channels", "units"),
}


class Growth:
    """From sizes to others, rows of :data:`SIZES`; post-norm, shared embeddings."""

    def __init__(self, small: dict[str, Any], large: dict[str, Any]) -> None:
        self.small, self.large = small, large
        self.width = large["embed_dim"] // small["embed_dim"]
        self.hidden = large["ffn_embed_dim"] // small["ffn_embed_dim"]
        self.heads = large["attention_heads"] // small["attention_heads"]
        self.head_size = self.width // self.heads
        # A product of longer queries and keys, divided by the root of another length.
        self.query_scale = self.head_size**-0.5

    def state(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        """The state of the large model, from that of the small one."""
        grown: dict[str, Tensor] = {}
        last = self.small["layers"] - 1
        for name, value in state.items():
            layer = re.search(r"layers\.(\d+)\.", name)
            grown[name] = self.tensor(name, value)
            if layer and int(layer[1]) == last:
                for further in range(last + 1, self.large["layers"]):
                    further_name = name.replace(f"layers.{last}.", f"layers.{further}.")
                    grown[further_name] = grown[name].clone()
        for side in ("encoder", "decoder"):
            self._make_identities(grown, f"{side}.layers", last)
        # The shared embedding is read with sqrt(width), and written with as many more channels.
        norm = f"decoder.layers.{self.large['layers'] - 1}.final_layer_norm"
        for kind in ("weight", "bias"):
            grown[f"{norm}.{kind}"] = grown[f"{norm}.{kind}"] / self.width**0.5
        return grown

    def _make_identities(self, grown: dict[str, Tensor], layers: str, last: int) -> None:
        """Layers after ``last`` add nothing; the scale of its last norm moves to the end."""
        end = self.large["layers"] - 1
        for layer in range(last, end + 1):
            names = [name for name in grown if name.startswith(f"{layers}.{layer}.")]
            for name in names:
                if layer > last and re.search(r"(out_proj|fc2)\.", name):
                    grown[name] = torch.zeros_like(grown[name])
                plain = layer < end if "final_layer_norm" in name else layer > last
                if "layer_norm" in name and plain:
                    make = torch.ones_like if name.endswith("weight") else torch.zeros_like
                    grown[name] = make(grown[name])

    def tensor(self, name: str, value: Tensor) -> Tensor:
        """The parameter ``name`` of the large model."""
        module, _, kind = name.rpartition(".")
        module = module.rpartition(".")[2]
        if kind in ("version", "position_signature"):
            return value
        if name.endswith(("embed_tokens.weight", "output_projection.weight")):
            return self._channels(value, -1) / self.width**0.5
        if "layer_norm" in module:
            return self._channels(value, 0)
        if module in LINEAR:
            rows, columns = (getattr(self, f"_{axis}") for axis in LINEAR[module])
            scale = self.query_scale if module == "q_proj" else 1.0
            grown = rows(value, 0) * scale
            if kind == "bias":
                return grown
            grown = columns(grown, 1)
            return grown * (value.size(1) / grown.size(1))
        if kind == "by_offset":  # (H, distances)
            return value.repeat_interleave(self.heads, 0)
        if kind in ("query", "key"):  # (H, positions, rank)
            grown = value.repeat_interleave(self.heads, 0).repeat_interleave(self.head_size, 2)
            return grown / self.head_size if kind == "query" else grown
        raise SystemExit(f"{name}: growing it is not known; sinusoidal, diet_rel and diet_abs are")

    def _channels(self, value: Tensor, axis: int) -> Tensor:
        return value.repeat_interleave(self.width, axis)

    def _units(self, value: Tensor, axis: int) -> Tensor:
        return value.repeat_interleave(self.hidden, axis)

    def _heads(self, value: Tensor, axis: int) -> Tensor:
        """Channels of heads along ``axis``: each head, and each channel of it, several times."""
        heads = value.unflatten(axis, (self.small["attention_heads"], -1))
        heads = heads.repeat_interleave(self.heads, axis)
        return heads.repeat_interleave(self.head_size, axis + 1).flatten(axis, axis + 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("checkpoint", help="of a tiny model with --share-all-embeddings")
    parser.add_argument("out", help="the file to write")
    parser.add_argument("--stock", action="store_true", help="for fairseq's own transformer")
    options = parser.parse_args()
    diet_mt.register()
    from fairseq.checkpoint_utils import load_checkpoint_to_cpu
    from omegaconf import OmegaConf

    checkpoint = load_checkpoint_to_cpu(options.checkpoint)
    checkpoint["model"] = Growth(SIZES["tiny"], SIZES["base"]).state(checkpoint["model"])
    if options.stock:
        del checkpoint["model"]["position_signature"]
    checkpoint["cfg"] = OmegaConf.to_container(checkpoint["cfg"])  # as fairseq saves it
    torch.save(checkpoint, options.out)


if __name__ == "__main__":
    main()
