"""Grows a trained tiny translation model to base: decoding timed with trained weights of that size.

    python results/benchmark/grow.py checkpoints/diet_rel.1/checkpoint_best.pt diet_rel_base.pt
    fairseq-train … --arch diet_rel_base --finetune-from-model diet_rel_base.pt

The large model computes what the small one does (Net2Net, Chen et al. 2016, arXiv:1511.05641, 2.3):
channels, heads and hidden units are copied, what reads them is divided by the number of copies, new
layers add nothing. But sinusoidal positions get other frequencies. --stock: for fairseq's model.
"""

import sys

import torch


def copies(value, dim, parts, factors):
    """Copies of heads, channels or units along ``dim``: of each part, and of each entry of it."""
    value = value.unflatten(dim, (parts, -1)).repeat_interleave(factors[0], dim)
    return value.repeat_interleave(factors[1], dim + 1).flatten(dim, dim + 1)


def grow(state, small, large):
    """The state of a model of sizes ``large``, from that of one of sizes ``small``."""
    width, hidden, heads = (
        large[name] // small[name] for name in ("embed_dim", "ffn_embed_dim", "attention_heads")
    )
    inside, first, last = width // heads, small["layers"] - 1, large["layers"] - 1
    axes = {"channels": (1, (1, width)), "units": (1, (1, hidden))}
    axes["heads"] = small["attention_heads"], (heads, inside)
    # Rows and columns of the weights of each linear layer.
    linear = dict.fromkeys(("q_proj", "k_proj", "v_proj"), ("heads", "channels"))
    linear |= {"out_proj": ("channels", "heads")}
    linear |= {"fc1": ("units", "channels"), "fc2": ("channels", "units")}

    def tensor(name, value):
        module, kind = name.split(".")[-2:] if "." in name else ("", name)
        if kind in ("version", "position_signature"):
            return value
        if module in ("embed_tokens", "output_projection"):
            return copies(value, 1, *axes["channels"]) / width**0.5
        if "layer_norm" in module:
            return copies(value, 0, *axes["channels"])
        if module in linear:
            rows, columns = (axes[axis] for axis in linear[module])
            # Longer queries and keys: their product is divided by the root of another length.
            grown = copies(value, 0, *rows) * (inside**-0.5 if module == "q_proj" else 1.0)
            if kind == "weight":
                grown = copies(grown, 1, *columns) / (columns[1][0] * columns[1][1])
            return grown
        if kind == "by_offset":  # (H, distances)
            return value.repeat_interleave(heads, 0)
        if kind in ("query", "key"):  # (H, positions, rank)
            grown = value.repeat_interleave(heads, 0).repeat_interleave(inside, 2)
            return grown / inside if kind == "query" else grown
        raise SystemExit(f"{name}: not a parameter of sinusoidal, diet_rel or diet_abs")

    grown = {name: tensor(name, value) for name, value in state.items()}
    for name in [name for name in grown if f".layers.{first}." in name]:
        one = torch.ones_like if name.endswith("weight") else torch.zeros_like
        for layer, value in enumerate([grown[name]] * (last - first + 1), start=first):
            if layer > first and name.split(".")[-2] in ("out_proj", "fc2"):
                value = torch.zeros_like(value)
            # The scale of the last norm moves to the end.
            if "layer_norm" in name and (layer < last if "final" in name else layer > first):
                value = one(value)
            grown[name.replace(f".layers.{first}.", f".layers.{layer}.")] = value.clone()
    for kind in ("weight", "bias"):  # a shared embedding is read with more channels
        grown[f"decoder.layers.{last}.final_layer_norm.{kind}"] /= width**0.5
    return grown


if __name__ == "__main__":
    from fairseq.checkpoint_utils import load_checkpoint_to_cpu
    from omegaconf import OmegaConf

    from diet_mt.models.architectures import SIZES

    checkpoint = load_checkpoint_to_cpu(sys.argv[1])
    checkpoint["model"] = grow(checkpoint["model"], SIZES["tiny"], SIZES["base"])
    if "--stock" in sys.argv[3:]:
        del checkpoint["model"]["position_signature"]
    checkpoint["cfg"] = OmegaConf.to_container(checkpoint["cfg"])  # as fairseq saves it
    torch.save(checkpoint, sys.argv[2])
