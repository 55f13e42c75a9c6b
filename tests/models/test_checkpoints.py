"""Checkpoints that fit, those that get a fresh head or segments, and those that are refused."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest
import torch
from fairseq.models.roberta import RobertaModel
from omegaconf import OmegaConf
from torch import Tensor, nn

from diet_mt.fairseq_patches.error_lines import one_line
from diet_mt.models.diet_roberta import DietRobertaModel
from diet_mt.models.signature import signature_tensor, signature_text
from diet_mt.system.errors import UserError

from .. import toy_sentences
from ..toy import ONE_EACH, SAME_WIDTH, ToyTask, build, encoding_of, every_encoding

State = dict[str, Tensor]

TEXT = "".join(chr(code) for code in range(32, 127))  # all of printable ASCII

# The options of tests/toy.py as the signature names them, by encoding.
SETTLED = {
    "shaw": "clip=2 values=True",
    "t5": "buckets=8 max-distance=6",
    "tupe-rel": "buckets=8 max-distance=6",
    "linformer": "projected=3",
    "kerple": "kernel=log",
    "deberta": "clip=3",
    "deberta-v3": "clip=6 buckets=4 shared-projections=True",
    "alibi-trained": "trained-slopes=True",
    "shape": "shift=0",
    "cape": "global-shift=0.0 local-shift=0.0 global-scale=1.0",
    "diet-abs-lin": "projected=3",
}


def expected_signature(encoding: str, sharing: str | None, scale: str = "head") -> str:
    shared = [f"sharing={sharing}"] if sharing else []
    settled = [SETTLED[encoding]] if encoding in SETTLED else []
    return " ".join([encoding_of(encoding), *shared, *settled, f"scale={scale}"])


def refused(model: Any, state: State) -> str:
    """The one line with which ``model`` refuses ``state``, after which it is as it was."""
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises((UserError, RuntimeError)) as error:
        model.load_state_dict(dict(state))
    line = one_line(error.value)
    assert line is not None
    assert "\n" not in line
    assert len(line) < 600
    if isinstance(error.value, UserError):  # torch itself copies what does fit
        assert all(torch.equal(model.state_dict()[name], before[name]) for name in before)
    return line


# Signatures


def test_text_survives_averaging() -> None:
    """fairseq's average_checkpoints.py adds all checkpoints up, then divides; --store-ema scales
    and adds in place, at every update.
    """
    values = signature_tensor(TEXT)
    assert signature_text(values) == TEXT
    total = values.clone()
    for _ in range(99):
        total += values
    assert signature_text(total / 100) == TEXT
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for decay in (0.5, 0.9999):
            mean = values.to(dtype, copy=True)
            for _ in range(300):
                mean.mul_(decay).add_(values.to(dtype), alpha=1 - decay)
            assert signature_text(mean) == TEXT


@every_encoding
def test_the_signature_names_the_encoding(encoding: str, sharing: str | None) -> None:
    """And survives the way through a half-precision model and back."""
    model = build(encoding, sharing, attention_scale="model")
    assert model.signature == expected_signature(encoding, sharing, "model")
    state = model.bfloat16().state_dict()
    assert signature_text(state["position_signature"]) == model.signature
    build(encoding, sharing, attention_scale="model").load_state_dict(state)


OWN = ("diet-rel", "none")


@pytest.mark.parametrize(
    "case", [*ONE_EACH, ("diet-rel", "head-wise"), ("diet-rel", "layer-wise")], ids=str
)
def test_weights_of_another_encoding_are_refused(case: tuple[str, str | None]) -> None:
    """Also by encoders where segments would have to be added."""
    if case == OWN:
        return
    line = refused(build(*OWN), build(*case).state_dict())
    assert all(f"'{expected_signature(*each)}'" in line for each in (OWN, case))
    state = toy_sentences.build(*OWN).state_dict()
    for segments in ("none", "input"):
        assert expected_signature(*OWN) in refused(toy_sentences.build(*case, segments), state)


def test_weights_of_fairseqs_roberta_are_refused() -> None:
    given = toy_sentences.options("none", None, "none", max_positions=11)
    stock = RobertaModel.build_model(given, ToyTask())
    assert "signature" in refused(toy_sentences.build("learned"), stock.state_dict())


# The encoding, other options than those of the model, and what the refusal names. That all options
# are in the signature: EFFECTS of test_options.py.
CHANGED: list[tuple[str, dict[str, Any], str]] = [
    ("none", {"attention_scale": "model"}, "scale=model"),
    ("diet-abs", {"position_rank": 5}, "rank=5"),
    ("diet-rel", {"max_source_positions": 13}, "--max-source-positions"),
    ("concat", {"position_rank": 3}, "rank=3"),
    ("tupe-abs", {"max_source_positions": 13}, "--max-source-positions"),
    ("linformer", {"max_source_positions": 13}, "--max-source-positions"),
    ("deberta", {"position_clip": 4}, "clip=4"),
    ("learned", {"max_target_positions": 13}, "--max-target-positions"),
    (
        "diet-rel",
        {"position_in": "decoder,encoder", "position_input": "sinusoidal"},
        "in=encoder,decoder input=sinusoidal",
    ),
]


# The same for encoders, with the segments of the model.
CHANGED_ENCODERS: list[tuple[str, str, dict[str, Any], str]] = [
    ("diet-rel", "per-head", {"segments": "input"}, "--segment-encoding input"),
    ("diet-rel", "input", {"segments": "per-head"}, "--segment-encoding per-head"),
    ("diet-rel", "none", {"segments": "per-head"}, "--segment-encoding per-head"),
    ("diet-rel", "per-head", {"num_segments": 3}, "--num-segments"),
    ("learned", "input", {"num_segments": 7}, "--num-segments"),
    ("diet-rel", "none", {"max_source_positions": 12}, "--max-source-positions"),
    ("tupe-abs", "none", {"max_source_positions": 9}, "--max-source-positions"),
    ("diet-abs", "none", {"position_rank": 3}, "rank=3"),
    ("none", "none", {"encoder_ffn_embed_dim": 13}, "fc1"),
    ("none", "none", {"encoder_layers": 3}, "layers.2"),
]


@pytest.mark.parametrize(("encoding", "segments", "changes", "named"), [
    *((encoding, None, changes, named) for encoding, changes, named in CHANGED), *CHANGED_ENCODERS
])  # fmt: skip
def test_weights_trained_with_other_options_are_refused(
    encoding: str, segments: str | None, changes: dict[str, Any], named: str
) -> None:
    if segments is None:
        assert named in refused(build(encoding), build(encoding, **changes).state_dict())
    else:
        other = toy_sentences.build(encoding, None, **{"segments": segments, **changes})
        assert named in refused(toy_sentences.build(encoding, None, segments), other.state_dict())


def test_the_same_options_given_or_by_default_are_the_same_model() -> None:
    assert build("diet-rel", position_in="cross, encoder,decoder").signature == (
        build("diet-rel").signature
    )
    for encoding, at_input in (("diet-rel", "none"), ("linformer", "learned")):
        assert build(encoding, position_input=at_input).signature == build(encoding).signature


@pytest.mark.parametrize(
    ("encoding", "rank"), [("diet-abs", 8), ("diet-abs-lin", 8), ("concat", 2)]
)
def test_a_rank_that_is_given_is_in_the_signature(encoding: str, rank: int) -> None:
    """In older checkpoints the shapes of the tables have it."""
    given = build(encoding, position_rank=rank, **SAME_WIDTH)
    given.load_state_dict(build(encoding, seed=2, **SAME_WIDTH).state_dict())
    model = build(encoding, position_rank=rank + 1, **SAME_WIDTH)
    state = model.state_dict()
    in_signature = f" rank={rank + 1} "
    assert in_signature in signature_text(state["position_signature"])
    state["position_signature"] = signature_tensor(model.signature.replace(in_signature, " "))
    model.load_state_dict(dict(state))
    assert "--position-rank" in refused(given, state)


# Encoders: dictionary, segments, heads


def features(model: DietRobertaModel) -> Tensor:
    out: Tensor = model(**toy_sentences.batch("left"), features_only=True)[0]
    return out


with_segments = pytest.mark.parametrize(
    ("encoding", "segments"),
    [("diet-rel", "per-head"), ("diet-abs", "per-head"), ("shaw", "input"), ("linformer", "input")],
)


@with_segments
def test_a_checkpoint_without_segments_gets_them_at_zero(encoding: str, segments: str) -> None:
    """And the model computes what the one without segments computed, whatever the segments are."""
    plain = toy_sentences.build(encoding)
    model = toy_sentences.build(encoding, None, segments, seed=2)
    model.register_classification_head("new", num_classes=3)
    head = model.classification_heads["new"].dense.weight.clone()
    assert all(table.any() for table in toy_sentences.segment_parameters(model).values())
    model.load_state_dict(plain.state_dict())
    assert not any(table.any() for table in toy_sentences.segment_parameters(model).values())
    torch.testing.assert_close(features(model), features(plain), rtol=0, atol=1e-10)
    assert torch.equal(model.classification_heads["new"].dense.weight, head)


@pytest.mark.parametrize("segments", ["none", "input", "per-head"])
def test_every_entry_of_a_checkpoint_is_needed(segments: str) -> None:
    """But for those that came later; segments that are lost are no segments that never were."""
    model = toy_sentences.build("diet-rel", None, segments)
    state = model.state_dict()
    # fairseq fills in its own number of the format.
    later = ["segment_signature", "dictionary_signature"]
    for name in state.keys() - {"encoder.sentence_encoder.version", *later}:
        rest = {other: tensor for other, tensor in state.items() if other != name}
        named = "no position signature" if name == "position_signature" else name
        assert named in refused(model, rest)
    for name in later:
        rest = {other: tensor for other, tensor in state.items() if other != name}
        model.load_state_dict(rest)
        assert torch.equal(model.state_dict()[name], state[name])
    more = {**state, "encoder.sentence_encoder.other": torch.zeros(1)}
    assert "encoder.sentence_encoder.other" in refused(model, more)
    plain = toy_sentences.build("diet-rel").state_dict()
    del plain["encoder.lm_head.bias"]  # segments may be added, nothing else
    assert "encoder.lm_head.bias" in refused(model, plain)


def test_another_dictionary_of_the_same_size_is_refused() -> None:
    model = toy_sentences.build("diet-rel")
    state = model.state_dict()
    state["dictionary_signature"] = state["dictionary_signature"].flip(0)
    assert "dictionary" in refused(model, state)


@pytest.mark.parametrize("layer", ["0", "1"])
def test_pruning_keeps_the_segments_of_the_remaining_layers(layer: str) -> None:
    """--encoder-layers-to-keep on a checkpoint of the whole model."""
    whole = toy_sentences.build("diet-rel", None, "per-head")
    pruned = toy_sentences.build("diet-rel", None, "per-head", seed=2, encoder_layers_to_keep=layer)
    cfg = OmegaConf.create({"_name": "diet_roberta", "encoder_layers_to_keep": layer})
    pruned.load_state_dict(whole.state_dict(), strict=True, model_cfg=cfg)
    ours, theirs = (m.encoder.sentence_encoder.segment_positions for m in (pruned, whole))
    assert len(ours.layers) == 1
    assert torch.equal(ours.layers[0].weight, theirs.layers[int(layer)].weight)


# The span head

TOKENS = torch.tensor([[0, 7, 2, 2, 8, 9, 2], [0, 5, 6, 2, 2, 8, 2]])


def with_head(head: bool = True, **changes: Any) -> DietRobertaModel:
    sizes = {"layers": 1, "embed_dim": 12, "ffn_embed_dim": 14, "attention_heads": 3}
    options = {f"encoder_{name}": size for name, size in sizes.items()}
    options |= {"max_source_positions": 11, "dropout": 0.0, "attention_dropout": 0.0}
    given = Namespace(**{**options, "position_encoding": "diet-rel", **changes})
    model = DietRobertaModel.build_model(given, ToyTask())
    if head:
        model.register_span_head()
    return model.eval()


def test_logits_are_products_of_features_with_two_vectors() -> None:
    model, plain = with_head(), with_head(False)
    assert model.span_head is not None
    nn.init.normal_(model.span_head.out.bias)
    states, _ = model(TOKENS, features_only=True)
    weight, bias = model.span_head.out.weight, model.span_head.out.bias
    expected = (states[:, :, None] * weight).sum(-1) + bias  # (B, S, 2)
    torch.testing.assert_close(model(TOKENS, use_span_head=True)[0], expected, rtol=0, atol=1e-5)
    plain.load_state_dict({k: v for k, v in model.state_dict().items() if "span_head" not in k})
    assert torch.equal(model(TOKENS)[0], plain(TOKENS)[0])


def test_a_head_is_fresh_or_whole_or_left_out(caplog: pytest.LogCaptureFixture) -> None:
    pretrained, trained, model = with_head(False), with_head(), with_head()
    before = {name: value.clone() for name, value in model.span_head.state_dict().items()}
    model.load_state_dict(pretrained.state_dict())
    for name, value in model.span_head.state_dict().items():
        assert torch.equal(value, before[name])
    nn.init.normal_(trained.span_head.out.weight)
    for each in (trained, model):
        each.register_classification_head("sentence", num_classes=3)
    model.load_state_dict(trained.state_dict())
    assert torch.equal(model.span_head.out.weight, trained.span_head.out.weight)
    sentence = {"features_only": True, "classification_head_name": "sentence"}
    assert torch.equal(model(TOKENS, **sentence)[0], trained(TOKENS, **sentence)[0])
    broken = trained.state_dict()
    del broken["span_head.out.bias"]
    assert "span_head.out.bias" in refused(with_head(), broken)
    # Fine-tuning on sentences after questions.
    plain = with_head(False)
    plain.load_state_dict(trained.state_dict())
    assert "span head" in caplog.text
    assert torch.equal(plain(TOKENS)[0], trained(TOKENS)[0])


def test_all_of_a_model_with_a_head_gets_gradients() -> None:
    model = with_head(segment_encoding="per-head").train()
    segments = torch.tensor([[0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1]])
    model(TOKENS, segment_ids=segments, use_span_head=True)[0].pow(2).sum().backward()
    for name, parameter in model.named_parameters():
        assert (parameter.grad is None) == name.startswith("encoder.lm_head."), name
        if "segment_positions" in name or "span_head.out.weight" in name:
            assert parameter.grad.any(), name
