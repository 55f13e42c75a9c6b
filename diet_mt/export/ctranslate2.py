"""Export of translation models to CTranslate2, for the positions that its format supports."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import torch

from ..bench.worker import ACTIVATIONS, ctranslate2_spec, save_for_ctranslate2
from ..positions import ENCODER
from ..positions.position_ids import RandomizedPositions, frequencies
from ..positions.relative import RelativeBias
from ..positions.rotary import RotaryPositions
from ..positions.shaw import ShawPositions
from ..system.errors import UserError

# Names of the parameters that the format supports.
_HELD = re.compile(
    r"(encoder|decoder)\.((embed_tokens|output_projection|project_out_dim|layer_norm"
    r"|layernorm_embedding|embed_positions|self_attn_positions)\.|layers\.\d+\."
    r"((self|encoder)_attn\.([qkv]|out)_proj|fc[12]|(self_attn|encoder_attn|final)_layer_norm)\.)"
)

Fields = Dict[str, Any]


@torch.no_grad()
def save(model: Any, task: Any, folder: Path) -> None:
    """Writes ``model.bin``, ``config.json`` and the vocabularies to ``folder``.

    Raises :class:`UserError` for a model that the format does not support.
    """
    stacks = model.encoder, model.decoder
    forms = [form for form in map(_positions, stacks) if form is not None]
    if model.decoder.encoder_attn_positions is not None or len(forms) < 2:
        raise UserError(
            f"{model.signature}: CTranslate2's format has positions at the input or, without "
            "those, in self-attention of all layers: Shaw's vectors shared by the heads, "
            "rotations by fixed frequencies, and biases by distance shared by the layers"
        )
    others = [name for name, _ in model.named_parameters() if not _HELD.match(name)]
    activations = {stack.cfg.activation_fn for stack in stacks} - ACTIVATIONS.keys()
    if others or activations:
        raise UserError(f"{[*others, *activations][0]}: CTranslate2's format has no such part")
    dictionaries = task.source_dictionary, task.target_dictionary
    spec = ctranslate2_spec(model, *dictionaries, [options for options, _ in forms])
    lengths = model.encoder.max_source_positions, model.decoder.max_target_positions
    for own, stack, (_, of_layers), longest in zip(
        (spec.encoder, spec.decoder), stacks, forms, lengths, strict=True
    ):
        for layer, fields in zip(own.layer, of_layers, strict=True):
            vars(layer.self_attention).update(fields)
        if stack.self_attn_positions is None:
            rows = torch.zeros(longest, stack.layers[0].self_attn.embed_dim)
            if stack.embed_positions is not None:
                rows = stack.embed_positions.rows(stack.token_positions.at(0, longest))[0]
            own.position_encodings.encodings = rows.contiguous().numpy()
    for layer, module in zip(spec.decoder.layer, model.decoder.layers.children(), strict=True):
        layer.attention.queries_scale = module.encoder_attn.scaling
    save_for_ctranslate2(spec, str(folder))


def _positions(stack: Any) -> Optional[Tuple[Fields, List[Fields]]]:
    """CTranslate2's options of a stack, and fields of each self-attention; None: unsupported."""
    positions, layers = stack.self_attn_positions, len(list(stack.layers.children()))
    scale = stack.layers[0].self_attn.scaling
    plain: Fields = {"queries_scale": scale}
    if positions is None:
        return {}, [plain] * layers
    randomized = isinstance(stack.token_positions, RandomizedPositions)
    if stack.embed_positions is not None or randomized or positions.shape.skipped:
        return None
    if isinstance(positions, RotaryPositions):
        from ctranslate2.specs.attention_spec import RotaryScalingType

        size, encoding = positions.shape.head_dim, positions.encoding
        columns, factor = encoding.columns(size), encoding.attention_factor()
        frequency = encoding.frequencies(size, torch.arange(2))[:, : columns // 2]
        if len(frequency) > 1 or (columns < size and factor != 1):
            return None
        # This kind of scaling has a factor for each frequency.
        options = {"rotary_dim": columns, "rotary_scaling_type": RotaryScalingType.Su}
        factors = (frequencies(columns, frequency.device) / frequency[0]).float().numpy()
        fields = {f"rotary_scaling_{kind}_factor": factors for kind in ("long", "short")}
        # ``factor`` scales both queries and keys.
        return options, [{**fields, "queries_scale": scale * factor**2}] * layers
    if isinstance(positions, ShawPositions) and positions.stacked("of_keys").size(1) == 1:
        from ctranslate2.specs.model_spec import OPTIONAL

        tables = [
            {name: vectors[0].numpy() for name, vectors in table.named_parameters()}
            for table in positions.per_layer(list(positions.tables()))
        ]
        return {"relative_position": True}, [
            plain
            | {"relative_position_keys": table["of_keys"]}
            | {"relative_position_values": table.get("of_values", OPTIONAL)}
            for table in tables
        ]
    if isinstance(positions, RelativeBias) and positions.by_distance(0, 0).size(0) == 1:
        return {"relative_attention_bias": True}, [plain | _buckets(positions)] * layers
    return None


def _buckets(positions: RelativeBias) -> Fields:
    """The bias in T5's buckets, with one bucket for each distance up to n - 1.

    Half of T5's buckets have one distance each. The other half, by the logarithm of the distance,
    has all longer ones, which get the bias of distance n - 1 here. In the encoder, the upper half
    of all buckets is for keys after the query.
    """
    shape = positions.shape
    longest = max(shape.max_queries, shape.max_keys)
    sides = [positions.by_distance(0, longest - 1)]
    if shape.kind == ENCODER:
        sides.append(positions.by_distance(1 - longest, 0).flip(-1))
    halves = [torch.cat([side, side[..., -1:].expand_as(side)], dim=-1) for side in sides]
    table = torch.cat(halves, dim=-1)[0].expand(shape.heads, -1)  # (H, buckets)
    return {
        "relative_attention_bias": table.t().float().contiguous().numpy(),
        "relative_attention_max_distance": np.int32(2 * longest),
    }
