"""Positions of a checkpoint that a training with a new optimizer changes: lengths, or all."""

from __future__ import annotations

import logging
from argparse import Namespace
from typing import Any

import pytest
import torch
from fairseq.models.transformer import TransformerModel
from torch import Tensor, nn

from diet_mt.fairseq_patches.trust import attach_options
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.system.errors import UserError

from ..toy import (
    ONE_EACH,
    PAD,
    SIZES,
    UNLIMITED,
    ToyTask,
    build,
    collate,
    name_of,
    options,
    position_parameters,
    sources,
    targets,
)

LONG = (15, 3, 12, 1, 14)  # tokens, of sources and of targets


def load(model: Any, other: nn.Module, given: Namespace, *, adapts: bool = True) -> None:
    """Loads the weights of ``other``, a model with the options ``given``, as a training does."""
    state: dict[str, Any] = {"args": given, "model": other.state_dict()}
    attach_options(state)
    model.adapts = adapts
    model.load_state_dict(state["model"])


def lengths(source: int, target: int) -> dict[str, int]:
    return {"max_source_positions": source, "max_target_positions": target}


def logits(model: DietTransformerModel, *batch: tuple[int, ...]) -> Tensor:
    source = collate(sources(*batch[:1]), "left")
    out: Tensor = model(source, source.ne(PAD).sum(1), collate(targets(*batch[1:])))[0]
    return out


CASES = [(*case, "clip") for case in ONE_EACH if case[0] not in UNLIMITED]
CASES += [("diet-rel", "none", "refuse"), ("diet-rel", "none", "repeat")]
CASES += [("diet-abs", None, "repeat")]


@pytest.mark.parametrize(
    ("encoding", "sharing", "rule"),
    [pytest.param(*case, id=f"{name_of(*case[:2])}-{case[2]}") for case in CASES],
)
def test_lengths(encoding: str, sharing: str | None, rule: str) -> None:
    """Extended tables are what the shorter ones say of longer sentences; where they were long
    enough, nothing changes, whatever becomes of the other side.
    """
    read = {"refuse": "clip"}.get(rule, rule)
    old = build(encoding, sharing, beyond_table=read)
    given = options(encoding, sharing, **lengths(11, 10))
    model = build(encoding, sharing, seed=2, beyond_table=rule, **lengths(16, 19))
    load(model, old, given)
    for batch in ((LONG, LONG), ()):
        torch.testing.assert_close(logits(model, *batch), logits(old, *batch), rtol=0, atol=1e-12)
    for source, target in ((8, 7), (16, 7), (8, 19)):
        model = build(encoding, sharing, seed=2, beyond_table=rule, **lengths(source, target))
        load(model, old, given)
        torch.testing.assert_close(logits(model), logits(old), rtol=0, atol=1e-12)


def test_a_table_by_distance_keeps_its_distances() -> None:
    """Cross-attention, of which tables for 4 x 7 and 7 x 4 tokens have the same size."""
    old = build("diet-rel", "none", position_in="cross", **lengths(7, 4))
    (table, *_) = position_parameters(old).values()
    model = build("diet-rel", "none", seed=2, position_in="cross", **lengths(4, 7))
    given = options("diet-rel", "none", **lengths(7, 4))
    with pytest.raises(UserError, match="--reset-optimizer"):
        load(model, old, given, adapts=False)
    load(model, old, given)
    (loaded, *_) = position_parameters(model).values()
    assert loaded.shape == table.shape
    for query in range(7):
        for key in range(4):
            distance = max(min(query - key, 3), -6)
            assert torch.equal(loaded[:, query - key + 3], table[:, distance + 6])


@pytest.mark.parametrize("encoding", ["learned", "diet-abs", "linformer"])
def test_a_table_of_positions_is_extended_by_a_rule_alone(encoding: str) -> None:
    model = build(encoding, **lengths(12, 10))
    with pytest.raises(UserError, match="--beyond-table"):
        load(model, build(encoding), options(encoding))


@pytest.mark.parametrize("encoding", ["learned", "diet-rel", "tupe-abs"])
def test_decoding_refuses_other_lengths(encoding: str) -> None:
    model = build(encoding, **lengths(8, 7))
    with pytest.raises(UserError, match="--max-source-positions 11"):
        load(model, build(encoding), options(encoding), adapts=False)


def stock() -> tuple[nn.Module, Namespace]:
    given = Namespace(arch="transformer", **SIZES)
    return TransformerModel.build_model(given, ToyTask()).double(), given


def ours(encoding: str) -> tuple[nn.Module, Namespace]:
    return build(encoding, seed=3, **lengths(9, 8)), options(encoding, **lengths(9, 8))


@pytest.mark.parametrize(
    ("encoding", "theirs"),
    [
        *[(encoding, "") for encoding in ("diet-rel", "tupe-rel", "learned")],
        *(("sinusoidal", "diet-abs"), ("linformer", "sinusoidal")),
        *(("diet-abs", "learned"), ("none", "diet-rel")),
    ],
)
def test_new_positions(encoding: str, theirs: str, caplog: pytest.LogCaptureFixture) -> None:
    """All other weights of the checkpoint; the model's own positions, as they were."""
    other, given = ours(theirs) if theirs else stock()
    model = build(encoding, reset_positions=True)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(UserError, match="--reset-optimizer"):
        load(model, other, given, adapts=False)
    with caplog.at_level(logging.INFO):
        load(model, other, given)
    assert model.signature in caplog.text
    tables, weights = position_parameters(model), other.state_dict()
    for name, value in model.state_dict().items():
        own = name in tables or name == "position_signature"
        assert torch.equal(value, before[name] if own else weights[name]), name


def test_positions_that_are_the_same_do_not_start_anew() -> None:
    other = build("diet-abs", seed=2)
    model = build("diet-abs", reset_positions=True)
    load(model, other, options("diet-abs"))
    for name, value in model.state_dict().items():
        assert torch.equal(value, other.state_dict()[name])


def test_positions_take_no_part_of_the_width() -> None:
    """Word embeddings with ``concat`` are narrower."""
    other, given = stock()
    with pytest.raises(RuntimeError, match="embed_tokens"):
        load(build("concat", reset_positions=True), other, given)
