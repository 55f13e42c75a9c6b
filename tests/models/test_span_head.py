"""The span head: where it stands, what it computes, and which checkpoints have one."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest
import torch

from diet_mt.models.diet_roberta import DietRobertaModel

from ..toy import ToyTask

SIZES = {
    "encoder_layers": 1,
    "encoder_embed_dim": 12,
    "encoder_ffn_embed_dim": 14,
    "encoder_attention_heads": 3,
    "max_source_positions": 11,
    "dropout": 0.0,
    "attention_dropout": 0.0,
}


def build(encoding: str = "diet-rel", head: bool = True, **changes: Any) -> DietRobertaModel:
    options = Namespace(**{**SIZES, "position_encoding": encoding, **changes})
    model = DietRobertaModel.build_model(options, ToyTask())
    if head:
        model.register_span_head()
    return model.eval()


TOKENS = torch.tensor([[0, 7, 2, 2, 8, 9, 2], [0, 5, 6, 2, 2, 8, 2]])


def test_logits_are_products_of_features_with_two_vectors() -> None:
    model = build()
    assert model.span_head is not None
    torch.nn.init.normal_(model.span_head.out.bias)
    logits, _ = model(TOKENS, use_span_head=True)
    assert logits.shape == (2, 7, 2)
    features, _ = model(TOKENS, features_only=True)
    weight, bias = model.span_head.out.weight, model.span_head.out.bias
    for row in range(2):
        for column in range(7):
            for side in range(2):
                expected = sum(features[row, column] * weight[side]) + bias[side]
                assert logits[row, column, side].item() == pytest.approx(expected.item(), abs=1e-5)


def test_without_asking_for_it_the_model_is_what_it_was() -> None:
    model, plain = build(), build(head=False)
    plain.load_state_dict({k: v for k, v in model.state_dict().items() if "span_head" not in k})
    assert torch.equal(model(TOKENS)[0], plain(TOKENS)[0])
    assert not any("span_head" in name for name in plain.state_dict())
    assert {"span_head.out.weight", "span_head.out.bias"} <= model.state_dict().keys()


def test_a_pretrained_checkpoint_gets_a_fresh_head() -> None:
    pretrained, model = build(head=False), build()
    before = {name: value.clone() for name, value in model.span_head.state_dict().items()}
    model.load_state_dict(pretrained.state_dict())
    assert before.keys() == model.span_head.state_dict().keys()
    for name, value in model.span_head.state_dict().items():
        assert torch.equal(value, before[name])
    features = pretrained(TOKENS, features_only=True)[0]
    assert torch.equal(model(TOKENS, features_only=True)[0], features)


def test_own_checkpoints_are_loaded_strictly() -> None:
    trained, model = build(), build()
    torch.nn.init.normal_(trained.span_head.out.weight)
    model.load_state_dict(trained.state_dict())
    assert torch.equal(model.span_head.out.weight, trained.span_head.out.weight)
    broken = trained.state_dict()
    del broken["span_head.out.bias"]
    with pytest.raises(RuntimeError, match=r"Missing key.*span_head\.out\.bias"):
        build().load_state_dict(broken)
    del broken["span_head.out.weight"]
    del broken["encoder.lm_head.bias"]
    with pytest.raises(RuntimeError, match="Missing key"):
        build().load_state_dict(broken)


def test_a_model_for_another_task_leaves_the_head_out(caplog: pytest.LogCaptureFixture) -> None:
    """Fine-tuning on sentences after questions."""
    trained, model = build(), build(head=False)
    model.load_state_dict(trained.state_dict())
    assert "the checkpoint's span head is left out" in caplog.text
    assert torch.equal(model(TOKENS)[0], trained(TOKENS)[0])


def test_beside_classification_heads() -> None:
    model = build()
    model.register_classification_head("sentence", num_classes=3)
    other = build()
    other.register_classification_head("sentence", num_classes=3)
    other.load_state_dict(model.state_dict())
    given = {"features_only": True, "classification_head_name": "sentence"}
    assert torch.equal(model(TOKENS, **given)[0], other(TOKENS, **given)[0])


def test_all_of_it_gets_gradients() -> None:
    model = build(segment_encoding="per-head").train()
    segments = torch.tensor([[0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1]])
    logits = model(TOKENS, segment_ids=segments, use_span_head=True)[0]
    logits.pow(2).sum().backward()
    without = {name for name, value in model.named_parameters() if value.grad is None}
    assert without == {n for n in without if n.startswith("encoder.lm_head.")}
    assert model.span_head.out.weight.grad.abs().min() > 0
    tables = [value for name, value in model.named_parameters() if "segment_positions" in name]
    assert tables
    assert all(table.grad.abs().max() > 0 for table in tables)
