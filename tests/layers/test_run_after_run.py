"""Runs of decoding one after the other and side by side: nothing of one reaches another.

What does not depend on the words is computed once per forward pass, and in decoding once per block
of positions; and whatever happens to a model, the next run starts from what is true then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from diet_mt.layers import run as runs
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.positions import NAMES, Span

from ..toy import (
    KINDS,
    KINDS_OF_ENCODING,
    UNLIMITED,
    attention_positions,
    build,
    close,
    collate,
    each_kind,
    sources,
    targets,
)

every_name = pytest.mark.parametrize("encoding", sorted(NAMES))


def counted(model: DietTransformerModel, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Calls of the encoding's ``for_layers`` by kind of attention, from now on."""
    calls: dict[str, int] = {}
    for kind in KINDS:
        positions = attention_positions(model, kind)
        if positions is None:
            continue
        calls[kind] = 0

        def ask(*given: Span, place: str = kind, own: Any = positions.for_layers) -> Any:
            calls[place] += 1
            return own(*given)

        monkeypatch.setattr(positions, "for_layers", ask)
    return calls


@pytest.mark.parametrize("mode", ["train", "eval"])
@each_kind
def test_positions_are_computed_once_per_pass(
    encoding: str, sharing: str | None, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many layers there are; under activation checkpointing, also in the backward pass."""
    model = build(encoding, sharing, checkpoint_activations=mode == "train")
    calls = counted(getattr(model, mode)(), monkeypatch)
    logits, _ = model(collate(sources(), "left"), None, collate(targets()))
    if mode == "train":
        logits.sum().backward()
    assert set(calls.values()) <= {1}
    assert calls.keys() == {k for k in KINDS if attention_positions(model, k) is not None}


SHORT = 8  # positions of a block, for a sentence of two blocks
LONG = SHORT + 6


@torch.no_grad()
@every_name
def test_a_long_generation_equals_the_full_pass_and_asks_once_per_block(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beams open after the first step, and change places where one block ends."""
    monkeypatch.setattr(runs, "BLOCK", SHORT)
    model = build(encoding, max_target_positions=30, max_source_positions=20).eval()
    source = collate(sources((9, 4)), "left")
    previous = torch.randint(4, 44, (2, LONG))
    full, _ = model(source, None, previous)
    encoder_out = model.encoder(source, None)
    calls = counted(model, monkeypatch)
    state: dict[str, Any] = {}
    row = torch.arange(2)
    for t in range(LONG):
        step, _ = model.decoder(previous[row][:, : t + 1], encoder_out, incremental_state=state)
        close(step[:, 0], full[row, t])
        order = {0: [0, 0, 1, 1], SHORT - 1: [1, 0, 2, 3], SHORT: [2, 3, 1, 0]}.get(t)
        if order is not None:
            row = row[order]
            model.decoder.reorder_incremental_state_scripting(state, torch.tensor(order))
            encoder_out = model.encoder.reorder_encoder_out(encoder_out, torch.tensor(order))
    assert calls.get("encoder", 0) == 0
    # In cross-attention once more for the keys of the source, which the first block serves, too.
    assert {calls[kind] for kind in ("decoder", "cross") if kind in calls} <= {2}


def run(model: DietTransformerModel, source: Tensor, previous: Tensor, state: Any = None) -> Tensor:
    """Logits of step-by-step decoding: (B, T, V)."""
    state = {} if state is None else state
    encoder_out = model.encoder(source, None)
    steps = [
        model.decoder(previous[:, : t + 1], encoder_out, incremental_state=state)[0]
        for t in range(previous.size(1))
    ]
    return torch.cat(steps, dim=1)


def updated(model: DietTransformerModel) -> None:
    """An update through ``.data``, as fairseq's Adam does it, which torch does not count as one."""
    for parameter in model.parameters():
        parameter.data.mul_(0.9).add_(0.05)


CHANGES: dict[str, Callable[[DietTransformerModel], object]] = {
    "update": updated,
    "float32": lambda model: model.float(),
    "bfloat16": lambda model: model.to(torch.bfloat16),
    "longer sentences": lambda model: None,
}


@torch.no_grad()
@pytest.mark.parametrize("change", CHANGES, ids=lambda name: name.replace(" ", "-"))
@pytest.mark.parametrize("encoding", KINDS_OF_ENCODING)
def test_nothing_of_a_run_is_left_for_the_next(encoding: str, change: str) -> None:
    """After a run that did not end and a change: what a fresh model gives."""
    model = build(encoding).eval()
    short, previous = collate(sources((4, 3)), "left"), torch.randint(4, 44, (2, 8))
    before = run(model, short, previous[:, :3])
    CHANGES[change](model)
    source = collate(sources((9, 4)), "left") if change == "longer sentences" else short
    found = run(model, source, previous)
    fresh = build(encoding, seed=2).eval().to(next(model.parameters()).dtype)
    fresh.load_state_dict(model.state_dict())
    assert torch.equal(found, run(fresh, source, previous))
    if change != "longer sentences":
        assert not torch.equal(found[:, :3].double(), before.double())


@torch.no_grad()
@pytest.mark.parametrize("encoding", KINDS_OF_ENCODING)
def test_two_runs_at_a_time_do_not_disturb_each_other(encoding: str) -> None:
    model = build(encoding, max_source_positions=20).eval()
    batches = [collate(sources((4, 3)), "left"), collate(sources((9, 5), seed=7), "left")]
    words = [torch.randint(4, 44, (2, 8)) for _ in batches]
    alone = [run(model, source, previous) for source, previous in zip(batches, words, strict=True)]
    encoded = [model.encoder(source, None) for source in batches]
    states: list[dict[str, Any]] = [{}, {}]
    for t in range(10):
        for number, lag in enumerate((0, 2)):  # the second run starts two steps later
            if 0 <= t - lag < 8:
                previous = words[number][:, : t - lag + 1]
                step, _ = model.decoder(previous, encoded[number], incremental_state=states[number])
                assert torch.equal(step[:, 0], alone[number][:, t - lag])


@every_name
def test_only_tables_end(encoding: str) -> None:
    model = build(encoding)
    kinds = [attention_positions(model, kind) for kind in KINDS]
    limited = {positions.limited for positions in kinds if positions is not None}
    assert limited <= {encoding not in UNLIMITED}


class OneDevice(TorchDispatchMode):
    """Refuses operations on tensors of several devices: something was left behind on one of them.

    Numbers without dimensions may come from anywhere, as in torch itself.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [value for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor)]
        devices = {value.device for value in given if value.dim()}
        assert len(devices) < 2 or func is torch.ops.aten._to_copy.default, (func, devices)
        return func(*args, **(kwargs or {}))


@torch.no_grad()
@pytest.mark.parametrize("device", ["meta", pytest.param("cuda", marks=pytest.mark.gpu)])
@every_name
def test_a_model_that_has_run_moves_whole(
    encoding: str, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``meta``, which every machine has, knows places and shapes but no values."""
    model = build(encoding).eval()
    source, previous = collate(sources((4, 4)), "left"), torch.randint(4, 44, (2, 4))
    before = run(model, source, previous)
    model.to(device)
    if device == "meta":
        # Whether there is padding, and whether the rows are beams: no to both.
        truth = Tensor.__bool__
        monkeypatch.setattr(Tensor, "__bool__", lambda t: False if t.is_meta else truth(t))
    with OneDevice():
        after = run(model, source.to(device), previous.to(device))
    assert after.device.type == device
    assert after.shape == before.shape
    if device != "meta":
        close(after.cpu(), before)
