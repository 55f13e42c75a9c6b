"""Terms and masks of a stack, layer by layer, and the terms of a decoding run.

What does not depend on the words is computed once per forward pass, and in decoding once per block
of positions; and whatever happens to a model, the next run computes its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from diet_mt.errors import UserError
from diet_mt.layers.terms import BLOCK, DecodingTerms, LayerTerms, unpack
from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.positions import NAMES, AttentionPositions, AttentionShape, Term, Terms

from ..toy import (
    KINDS,
    UNLIMITED,
    attention_positions,
    build,
    close,
    collate,
    every_encoding,
    sources,
    targets,
)

L, B, H, T, S, R = 2, 5, 3, 6, 7, 4
LIKE = torch.zeros(1, dtype=torch.float64)
every_name = pytest.mark.parametrize("encoding", sorted(NAMES))


@dataclass(frozen=True)
class Scheme(Term):
    """A term with tensors of its own."""

    by_query: ClassVar[frozenset[str]] = frozenset({"of_query"})

    of_query: Tensor | None = None
    of_key: Tensor | None = None


def mask(shape: tuple[int, ...]) -> Tensor:
    closed = torch.rand(shape) < 0.3
    return torch.zeros(shape, dtype=torch.float64).masked_fill_(closed, -math.inf)


def term_of(terms: LayerTerms, layer: int) -> Any:
    term = unpack("x", terms.of(layer))
    assert term is not None
    return term


class TestLayerTerms:
    @pytest.mark.parametrize("mask_shape", [(B, 1, 1, S), (1, 1, T, S)], ids=str)
    @pytest.mark.parametrize("heads", [1, H])
    def test_each_layer_gets_its_own_bias_and_the_mask(
        self, mask_shape: tuple[int, ...], heads: int
    ) -> None:
        bias, closed = torch.randn(L, heads, T, S, dtype=torch.float64), mask(mask_shape)
        terms = LayerTerms("x", Terms(bias), closed, like=LIKE, query_len=T)
        for layer in range(L):
            found = term_of(terms, layer)
            expected = bias[layer] + closed
            assert found.offsets.shape == expected.shape
            assert torch.equal(found.offsets, expected)
            assert not found.causal

    def test_a_shared_bias_is_joined_with_the_mask_once(self) -> None:
        bias = Terms(torch.randn(1, H, T, S))
        terms = LayerTerms("x", bias, mask((B, 1, 1, S)), like=LIKE)
        assert term_of(terms, 0).offsets is term_of(terms, 1).offsets

    def test_without_a_mask_and_without_a_bias(self) -> None:
        bias, closed = torch.randn(L, H, T, S), mask((B, 1, 1, S))
        assert torch.equal(
            term_of(LayerTerms("x", Terms(bias), None, like=LIKE), 1).offsets, bias[1:]
        )
        assert term_of(LayerTerms("x", None, closed, like=LIKE), 1).offsets is closed
        assert term_of(LayerTerms("x", None, None, like=LIKE), 1).offsets is None

    def test_offsets_take_the_precision_of_the_model(self) -> None:
        """A bias computed in float32 must not turn the logits of half precision into float32."""
        closed = mask((B, 1, 1, S)).half()
        terms = LayerTerms("x", Terms(torch.randn(L, H, T, S)), closed, like=closed)
        assert term_of(terms, 0).offsets.dtype == torch.float16

    @pytest.mark.parametrize("masked", [False, True])
    def test_the_future_is_closed_in_the_offsets_or_left_to_the_kernel(self, masked: bool) -> None:
        """Once: where there is a table anyway it says so, otherwise the kernel is told."""
        closed = mask((B, 1, 1, T)) if masked else None
        bias = torch.randn(L, H, T, T, dtype=torch.float64)
        given: dict[str, Any] = {"like": LIKE, "causal": True, "query_len": T}
        found = term_of(LayerTerms("x", Terms(bias), closed, **given), 1)
        assert not found.causal
        seen = torch.ones(T, T).tril().bool()
        expected = bias[1:] if closed is None else bias[1:] + closed
        assert torch.equal(found.offsets, expected.masked_fill(~seen, -math.inf))
        plain = term_of(LayerTerms("x", None, closed, **given), 1)
        assert plain.causal
        assert plain.offsets is closed
        one = LayerTerms("x", None, closed, like=LIKE, causal=True, query_start=T, query_len=1)
        assert not term_of(one, 1).causal, "the last query sees all keys"

    def test_tensors_of_a_scheme_reach_their_layer(self) -> None:
        own, shared = torch.randn(L, H, T, R), torch.randn(1, H, S, R)
        closed = mask((B, 1, 1, S))
        terms = Terms(kind=Scheme, tensors={"of_query": own, "of_key": shared})
        packed = LayerTerms("x", terms, closed, like=LIKE, query_start=3, query_len=T)
        for layer in range(L):
            found = term_of(packed, layer)
            assert type(found) is Scheme
            assert torch.equal(found.of_query, own[layer])
            assert torch.equal(found.of_key, shared[0])
            assert found.offsets is closed
            assert (found.query_start, found.query_len) == (3, T)

    def test_what_is_for_another_attention_is_not_unpacked(self) -> None:
        packed = LayerTerms("x", None, None, like=LIKE).of(0)
        assert all(name.startswith("x.") for name in packed)
        assert unpack("y", packed) is None

    def test_tensors_are_arguments_of_their_own(self) -> None:
        """Activation checkpointing differentiates through nothing else."""
        terms = Terms(torch.randn(1, H, T, S), Scheme, {"of_query": torch.randn(L, H, T, R)})
        packed = LayerTerms("x", terms, None, like=LIKE).of(0)
        tensors = {name for name, value in packed.items() if isinstance(value, Tensor)}
        assert tensors == {"x.offsets", "x.of_query"}


class Counted(AttentionPositions):
    """Says what it was asked: the bias at (i, j) is 1000 i + j, and so are its tensors."""

    def __init__(self, longest: int, limited: bool) -> None:
        super().__init__(AttentionShape(L, H, 4, longest, longest))
        self.limited = limited  # type: ignore[misc]
        self.asked: list[tuple[int, int, int]] = []

    def terms(self, query_start: int, query_len: int, key_len: int) -> Terms:
        self.asked.append((query_start, query_len, key_len))
        if self.limited:
            self.check_range(query_start, query_len, 1)
        queries = torch.arange(query_start, query_start + query_len)[:, None]
        bias = (1000 * queries + torch.arange(key_len))[None, None]
        rows = queries[None, None].expand(L, H, -1, R)
        return Terms(bias, Scheme, {"of_query": rows, "of_key": torch.ones(1, H, 1, R)})


class TestDecodingTerms:
    @pytest.mark.parametrize("limited", [False, True])
    def test_a_block_serves_its_steps_of_self_attention(self, limited: bool) -> None:
        positions, cache = Counted(2 * BLOCK + 10, limited), DecodingTerms()
        for query in range(2 * BLOCK + 10):
            found = cache.at(positions, query, query + 1, grows=True)
            expected = 1000 * query + torch.arange(query + 1)
            assert found.bias is not None
            assert torch.equal(found.bias, expected.view(1, 1, 1, -1))
            assert torch.equal(found.tensors["of_query"], torch.full((L, H, 1, R), query))
            assert found.tensors["of_key"].shape == (1, H, 1, R)
        last = 10 if limited else BLOCK
        assert positions.asked == [
            (0, BLOCK, BLOCK),
            (BLOCK, BLOCK, 2 * BLOCK),
            (2 * BLOCK, last, 2 * BLOCK + last),
        ]

    def test_a_block_serves_its_steps_of_cross_attention(self) -> None:
        positions, cache = Counted(200, True), DecodingTerms()
        for query in range(BLOCK + 1):
            found = cache.at(positions, query, S, grows=False)
            assert found.bias is not None
            assert found.bias[0, 0, 0].tolist() == [1000 * query + j for j in range(S)]
        assert positions.asked == [(0, BLOCK, S), (BLOCK, BLOCK, S)]

    def test_more_keys_than_before_are_computed_anew(self) -> None:
        positions, cache = Counted(200, True), DecodingTerms()
        for keys in (S, S - 2, S + 3):
            found = cache.at(positions, 1, keys, grows=False)
            assert found.bias is not None
            assert found.bias.size(-1) == keys
        assert positions.asked == [(0, BLOCK, S), (0, BLOCK, S + 3)]

    def test_a_query_beyond_the_tables_is_theirs_to_refuse(self) -> None:
        positions, cache = Counted(10, True), DecodingTerms()
        cache.at(positions, 9, 10, grows=True)
        with pytest.raises(UserError, match=r"11 tokens.*10 positions"):
            DecodingTerms().at(positions, 10, 11, grows=True)


def counted(model: DietTransformerModel, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Calls of the encoding's ``terms`` by kind of attention, from now on."""
    calls: dict[str, int] = {}
    for kind in KINDS:
        positions = attention_positions(model, kind)
        if positions is None:
            continue
        calls[kind] = 0

        def terms(*given: int, place: str = kind, own: Any = positions.terms) -> Terms:
            calls[place] += 1
            found: Terms = own(*given)
            return found

        monkeypatch.setattr(positions, "terms", terms)
    return calls


@pytest.mark.parametrize("mode", ["train", "eval"])
@every_encoding
def test_terms_are_computed_once_per_pass(
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


LONG = 70  # more than one block


@torch.no_grad()
@every_name
def test_a_long_generation_equals_the_full_pass_and_computes_terms_by_block(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build(encoding, max_target_positions=200, max_source_positions=100).eval()
    source = collate(sources((9, 4)), "left")
    previous = torch.randint(4, 44, (2, LONG))
    full, _ = model(source, None, previous)
    encoder_out = model.encoder(source, None)
    calls = counted(model, monkeypatch)
    state: dict[str, Any] = {}
    for t in range(LONG):
        step, _ = model.decoder(previous[:, : t + 1], encoder_out, incremental_state=state)
        close(step[:, 0], full[:, t])
    assert BLOCK < LONG <= 2 * BLOCK
    assert calls.get("encoder", 0) == 0
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
@every_name
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
@every_name
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
    source, previous = collate(sources((4, 4)), "left"), torch.randint(4, 44, (2, 8))
    before = run(model, source, previous)
    run(model, source, previous[:, :3])
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
