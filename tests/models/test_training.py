"""What fairseq's Transformer offers in training keeps working, with every layer's own table."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from omegaconf import OmegaConf
from torch import Tensor, nn

from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.positions import AttentionPositions

from ..toy import (
    attention_calls,
    attention_positions,
    build,
    collate,
    each_kind,
    position_parameters,
    sources,
    targets,
)

ROUNDING = 1e-10  # float64; the same sums, sometimes in another order


def batch() -> tuple[Tensor, None, Tensor]:
    return collate(sources(), "left"), None, collate(targets())


def gradients(model: nn.Module) -> dict[str, Tensor]:
    """Of one step, by parameter; the loss tells all outputs apart."""
    model.zero_grad()
    model(*batch())[0].sin().sum().backward()
    return {
        name: parameter.grad.clone()
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }


def assert_same_gradients(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(
            found[name], gradient, rtol=0, atol=ROUNDING, msg=f"gradient of {name}"
        )


@pytest.mark.parametrize("encoding", ["diet-rel", "tupe-abs"])
def test_activation_checkpointing_leaves_the_state_dict_alone(encoding: str) -> None:
    """Its gradients: ``tests/layers/test_call.py``."""
    plain, wrapped = build(encoding), build(encoding, checkpoint_activations=True)
    assert list(wrapped.state_dict()) == list(plain.state_dict())
    wrapped.load_state_dict(plain.state_dict(), strict=True)


def pruned_by_hand(
    model: DietTransformerModel, encoder: list[int], decoder: list[int]
) -> DietTransformerModel:
    """Keeps some layers and their tables, in place."""
    for kind, kept in (("encoder", encoder), ("decoder", decoder), ("cross", decoder)):
        positions = attention_positions(model, kind)
        for part in () if positions is None else positions.modules():
            if isinstance(part, AttentionPositions) and len(part.layers):
                # Where no layer is left one table stays, read by nobody.
                part.layers = nn.ModuleList(part.layers[number] for number in kept or [0])
    for stack, kept in ((model.encoder, encoder), (model.decoder, decoder)):
        stack.layers = nn.ModuleList(stack.layers[number] for number in kept)
    model.decoder.num_layers = len(decoder)
    return model


# One of them leaves no layer at all, the others no first layer in one of the stacks.
SEEDS = (3, 9, 16, 21)


@each_kind
def test_a_layer_that_is_not_dropped_uses_its_own_table(encoding: str, sharing: str | None) -> None:
    """What --encoder-layerdrop and --decoder-layerdrop leave equals a model of those layers."""
    left = set()
    for seed in SEEDS:
        model = build(encoding, sharing, encoder_layerdrop=0.5, decoder_layerdrop=0.5).train()
        torch.manual_seed(seed)
        with attention_calls(model) as calls:
            logits, _ = model(*batch())
        encoder = [number for kind, number in sorted(calls) if kind == "encoder"]
        decoder = [number for kind, number in sorted(calls) if kind == "decoder"]
        expected, _ = pruned_by_hand(model, encoder, decoder)(*batch())
        torch.testing.assert_close(logits, expected, rtol=0, atol=ROUNDING)
        left |= {("encoder", *encoder), ("decoder", *decoder)}
    # Counting what is left from 0 goes wrong only where an earlier layer is missing.
    assert left >= {("encoder", 1), ("decoder", 2), ("decoder", 1, 2)}


def test_layers_are_dropped_at_all() -> None:
    model = build("diet-rel", encoder_layerdrop=0.4, decoder_layerdrop=0.4).train()
    patterns = set()
    for _ in range(20):
        with attention_calls(model) as calls:
            model(*batch())
        patterns.add(tuple(sorted(calls)))
    assert len(patterns) > 5
    with attention_calls(model.eval()) as calls:
        model(*batch())
    assert len(calls) == 2 + 3 + 3


@pytest.mark.parametrize("alignment_layer", [0, 1, 2])
def test_the_layer_asked_for_alignment_is_found_when_others_are_dropped(
    alignment_layer: int,
) -> None:
    """By its number, not by its place in what is left."""
    model = build("diet-rel", decoder_layerdrop=0.5).train()
    seen = set()
    for seed in range(8):
        torch.manual_seed(seed)
        with attention_calls(model) as calls:
            extra = model(*batch(), alignment_layer=alignment_layer)[1]
        ran = ("cross", alignment_layer) in calls
        assert (extra["attn"][0] is not None) == ran
        if ran:
            weights = calls["cross", alignment_layer].weights
            assert weights is not None
            assert weights.shape == (5, 2, 6, 7)  # by head
        seen.add(ran)
    assert seen == {True, False}


@pytest.mark.parametrize(("encoder", "decoder"), [([1], [0, 2]), ([0, 1], [1])])
@each_kind
def test_pruning_keeps_the_tables_of_the_layers_that_are_kept(
    encoding: str, sharing: str | None, encoder: list[int], decoder: list[int]
) -> None:
    """--encoder-layers-to-keep, --decoder-layers-to-keep on a checkpoint of the whole model."""
    whole = build(encoding, sharing).eval()
    keep: dict[str, Any] = {
        "encoder_layers_to_keep": ",".join(map(str, encoder)),
        "decoder_layers_to_keep": ",".join(map(str, decoder)),
    }
    pruned = build(encoding, sharing, seed=2, **keep).eval()
    assert (len(pruned.encoder.layers), len(pruned.decoder.layers)) == (len(encoder), len(decoder))
    cfg = OmegaConf.create({"_name": "diet_transformer", **keep})
    pruned.load_state_dict(whole.state_dict(), strict=True, model_cfg=cfg)
    expected, _ = pruned_by_hand(whole, encoder, decoder)(*batch())
    torch.testing.assert_close(pruned(*batch())[0], expected, rtol=0, atol=ROUNDING)


@each_kind
def test_without_cross_attention(encoding: str, sharing: str | None) -> None:
    """--no-cross-attention: no table for what is not there, and decoding works."""
    model = build(encoding, sharing, no_cross_attention=True).eval()
    assert model.decoder.encoder_attn_positions is None
    assert not [name for name in model.state_dict() if "encoder_attn" in name]
    previous = collate([targets()[1]])
    full, extra = model(collate([sources()[0]]), None, previous)
    assert extra["attn"] == [None]
    encoder_out = model.encoder(collate([sources()[0]]), None)
    state: dict[str, Any] = {}
    for t in range(previous.size(1)):
        step, _ = model.decoder(previous[:, : t + 1], encoder_out, incremental_state=state)
        torch.testing.assert_close(step[:, 0], full[:, t], rtol=0, atol=ROUNDING)
        model.decoder.reorder_incremental_state_scripting(state, torch.tensor([0]))


OTHER_OPTIONS: dict[str, dict[str, Any]] = {
    "adaptive softmax": {"adaptive_softmax_cutoff": "10,20"},
    "layer norm on embeddings": {"layernorm_embedding": True},
    "no scale": {"no_scale_embedding": True},
    "no final norm": {
        "decoder_normalize_before": True,
        "encoder_normalize_before": True,
        "no_decoder_final_norm": True,
    },
    "shared output": {"share_decoder_input_output_embed": True},
    "output width": {"decoder_output_dim": 14},
    "gelu": {"activation_fn": "gelu"},
    "quantization noise": {"quant_noise_pq": 0.5, "quant_noise_pq_block_size": 2},
}


@pytest.mark.parametrize("name", OTHER_OPTIONS, ids=lambda name: name.replace(" ", "-"))
@pytest.mark.parametrize("encoding", ["diet-rel", "concat"])
def test_other_options_of_fairseq_train_and_decode(encoding: str, name: str) -> None:
    """Every position parameter gets a gradient, and step by step equals all at once."""
    model = build(encoding, **OTHER_OPTIONS[name]).train()
    features, _ = model.extract_features(*batch())
    if name == "adaptive softmax":
        goal = collate(targets()).flatten()
        outputs, _ = model.decoder.adaptive_softmax(features.flatten(0, 1), goal)
        outputs[0].sin().sum().backward()
    else:
        model.output_layer(features).sin().sum().backward()
    for table, parameter in position_parameters(model).items():
        assert parameter.grad is not None, table
        assert parameter.grad.any(), table
    model.eval()
    source, previous = collate(sources()), torch.tensor([[2, 5, 7, 9]]).expand(5, -1)
    full, _ = model.extract_features(source, None, previous)
    encoder_out = model.encoder(source, None)
    state: dict[str, Any] = {}
    for t in range(4):
        step, _ = model.decoder.extract_features(
            previous[:, : t + 1], encoder_out, incremental_state=state
        )
        torch.testing.assert_close(step[:, 0], full[:, t], rtol=0, atol=ROUNDING)
