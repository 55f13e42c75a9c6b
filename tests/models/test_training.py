"""fairseq's options of training, torch.compile and data parallel training, with every table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as distributed
from omegaconf import OmegaConf
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.nn import compiled
from diet_mt.nn.cross_entropy import from_features
from diet_mt.positions import AttentionPositions

from .. import toy_sentences
from ..toy import (
    KINDS_OF_ENCODING,
    ONE_EACH,
    PAD,
    attention_calls,
    attention_positions,
    build,
    close,
    collate,
    each_kind,
    gradients,
    position_parameters,
    sources,
    targets,
)
from .test_precision import batch


def pruned_by_hand(
    model: DietTransformerModel, encoder: list[int], decoder: list[int]
) -> DietTransformerModel:
    """Keeps some layers and their tables, in place."""
    for kind, layers in (("encoder", encoder), ("decoder", decoder), ("cross", decoder)):
        positions = attention_positions(model, kind)
        for part in () if positions is None else positions.modules():
            if isinstance(part, AttentionPositions) and len(part.layers):
                # Where no layer is left one table stays, read by nobody.
                part.layers = nn.ModuleList(part.layers[number] for number in layers or [0])
    for stack, layers in ((model.encoder, encoder), (model.decoder, decoder)):
        stack.layers = nn.ModuleList(stack.layers[number] for number in layers)
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
        close(logits, expected)
        left |= {("encoder", *encoder), ("decoder", *decoder)}
    # Counting what is left from 0 goes wrong only where an earlier layer is missing.
    assert left >= {("encoder", 1), ("decoder", 2), ("decoder", 1, 2)}


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
    close(pruned(*batch())[0], expected)


@each_kind
def test_without_cross_attention(encoding: str, sharing: str | None) -> None:
    """--no-cross-attention: no table for what is not there, and decoding works."""
    model = build(encoding, sharing, no_cross_attention=True).eval()
    assert model.decoder.encoder_attn_positions is None
    assert not [name for name in model.state_dict() if "encoder_attn" in name]
    source, previous = collate([sources()[0]]), collate([targets()[1]])
    full, extra = model(source, None, previous)
    assert extra["attn"] == [None]
    encoder_out, state = model.encoder(source, None), dict[str, Any]()
    for t in range(previous.size(1)):
        step, _ = model.decoder(previous[:, : t + 1], encoder_out, incremental_state=state)
        close(step[:, 0], full[:, t])
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
        close(step[:, 0], full[:, t])


# torch.compile

dynamo = pytest.importorskip("torch._dynamo")
compiles = pytest.mark.skipif(not dynamo.is_dynamo_supported(), reason="not on this Python")


@compiles
@pytest.mark.parametrize(("encoding", "sharing"), [
    pytest.param(*case, marks=() if case[0] in KINDS_OF_ENCODING else pytest.mark.slow)
    for case in ONE_EACH
])  # fmt: skip
def test_training_is_one_graph(encoding: str, sharing: str | None) -> None:
    model = build(encoding, sharing, encoder_layers=1, decoder_layers=1).train()
    source, previous = collate(sources(), "left"), collate(targets())

    def loss(source: Tensor, previous: Tensor) -> Tensor:
        features, _ = model(source, None, previous, features_only=True)
        weight = model.decoder.output_projection.weight
        total, _ = from_features(features.flatten(0, 1), weight, previous.flatten(), 0.1, PAD)
        return total

    dynamo.reset()  # graphs of other models, which torch counts together
    graph = torch.compile(loss, backend="eager", fullgraph=True)
    expected = compiled_gradients(model, loss, source, previous)
    for name, actual in compiled_gradients(model, graph, source, previous).items():
        close(actual, expected[name])


def compiled_gradients(
    model: DietTransformerModel, loss: Callable[..., Tensor], *batch: Tensor
) -> dict[str, Tensor]:
    model.zero_grad()
    value = loss(*batch)
    value.backward()
    grads = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return {"loss": value.detach(), **grads}


@compiles
def test_layers_share_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs: list[Any] = []

    def backend(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    made = torch.compile
    monkeypatch.setattr(torch, "compile", lambda f, **how: made(f, backend=backend, **how))
    compiled.compiled.cache_clear()
    plain = build("diet-rel", decoder_layers=2).train()
    model = build("diet-rel", decoder_layers=2, compile=True).train()
    model.load_state_dict(plain.state_dict())
    for lengths in ((7, 3, 5), (8, 4)):
        source, previous = collate(sources(lengths), "left"), collate(targets(lengths))
        close(model(source, None, previous)[0], plain(source, None, previous)[0])
    compiled.compiled.cache_clear()
    assert len(graphs) == 2  # one for each kind of layer


# Data parallel training. One process is enough to see parameters with no gradient, or with two.


@pytest.fixture(scope="module")
def _one_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    meeting_point: Path = tmp_path_factory.mktemp("gloo") / "store"
    distributed.init_process_group("gloo", init_method=meeting_point.as_uri(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.mark.usefixtures("_one_process")
@each_kind
def test_gradients_equal_those_of_one_plain_process(encoding: str, sharing: str | None) -> None:
    """Also of checkpointed layers, which run twice."""
    expected = gradients(build(encoding, sharing), *batch())
    for options in ({}, {"checkpoint_activations": True}):
        wrapped = build(encoding, sharing, **options)
        assert_one_process_changes_nothing(wrapped, expected, *batch())


def assert_one_process_changes_nothing(
    model: nn.Module, expected: dict[str, Tensor], *given: Any, **named: Any
) -> None:
    wrapped = DistributedDataParallel(model)
    for _ in range(2):  # an unused parameter is noticed in the step after
        actual = gradients(wrapped, *given, **named)
        assert actual.keys() == expected.keys()
        for name, gradient in expected.items():
            close(actual[name], gradient)
        torch.optim.SGD(wrapped.parameters(), lr=0.0).step()


@pytest.mark.usefixtures("_one_process")
@toy_sentences.each_kind
def test_gradients_of_an_encoder_equal_those_of_one_plain_process(
    encoding: str, sharing: str | None, segments: str
) -> None:
    """In a step of masked_lm."""
    case, given = (encoding, sharing, segments), toy_sentences.batch("left")
    given["masked_tokens"] = given["src_tokens"].gt(20)
    expected = gradients(toy_sentences.build(*case), **given)
    for options in ({}, {"checkpoint_activations": True}):
        wrapped = toy_sentences.build(*case, **options)
        assert_one_process_changes_nothing(wrapped, expected, **given)
