"""The loops in C++ against torch's operators."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
import torch
from torch import Tensor

from diet_mt import kernels
from diet_mt.nn.attention import LogitTerms

from .toy import build, collate, sources

KINDS = {torch.float32: 2e-6, torch.float64: 1e-13}
ROWS, SLOTS, GROUP = 6, 100, 3
SCALE = 0.7


@pytest.fixture(autouse=True, params=[0, 1, 2, 3], ids=["plain", "AVX2", "AVX-512", "VNNI"])
def _instruction_set(request: pytest.FixtureRequest) -> Iterator[None]:
    library = kernels._library()
    assert library is not None
    best = library.use_set(3)
    if library.use_set(request.param) != request.param:
        pytest.skip("this processor has none")
    yield
    library.use_set(best)


def by_operators(
    q: Tensor, keys: Tensor, values: Tensor, slots: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor]:
    """``slots`` (rows, S), ``bias`` (H, rows, S) -> (rows, H * D) and (H, rows, S)."""
    k, v = (each[slots].unflatten(2, (q.size(1), -1)) for each in (keys, values))
    weights = (SCALE * torch.einsum("rhd,rshd->hrs", q, k) + bias).softmax(-1)
    return torch.einsum("hrs,rshd->rhd", weights, v).flatten(1), weights


@pytest.mark.parametrize("kind", KINDS, ids=str)
@torch.no_grad()
def test_attention_over_slots(kind: torch.dtype) -> None:
    """With keys as wide as values, and twice as wide."""
    heads = 3
    for dim, wider, count in product((3, 8, 16, 20, 32, 64, 100), (1, 2), (1, 5, 16, 40)):
        key_dim = dim * wider
        q, new_k = torch.randn(2, ROWS, heads, key_dim, dtype=kind)
        new_v = torch.randn(ROWS, heads, dim, dtype=kind)
        keys, values = (torch.randn(SLOTS, heads * size, dtype=kind) for size in (key_dim, dim))
        slots = torch.stack([torch.randperm(SLOTS - ROWS)[: count + 2] for _ in range(ROWS)])
        slots[:, count - 1] = torch.arange(SLOTS - ROWS, SLOTS)  # the new ones differ
        bias, content_bias = (
            torch.randn(heads, 1, count, dtype=kind),
            torch.randn(1, heads, ROWS, count),
        )
        results = kernels.attend(
            *(q, keys, values, LogitTerms(bias, content_bias)),
            count=count,
            scale=SCALE,
            slots=slots.int(),
            new=(new_k, new_v),
            need_weights=True,
        )
        own = slots[:, count - 1]
        assert torch.equal(keys[own], new_k.flatten(1))
        assert torch.equal(values[own], new_v.flatten(1))
        total = bias + content_bias[0].to(kind)
        expected = by_operators(q, keys, values, slots[:, :count], total)
        for one, other in zip(results, expected, strict=True):
            assert one is not None
            message = f"{count} keys of size {key_dim}: {(one - other).abs().max()} off"
            torch.testing.assert_close(one, other, rtol=0, atol=KINDS[kind] * key_dim, msg=message)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@torch.no_grad()
def test_attention_over_the_source(kind: torch.dtype) -> None:
    heads, dim, count = 2, 8, 7
    q = torch.randn(heads, ROWS, dim, dtype=kind).transpose(0, 1)  # rows with gaps
    keys, values = torch.randn(2, ROWS // GROUP * count, heads * dim, dtype=kind)
    padding = torch.zeros(ROWS // GROUP, count, dtype=torch.bool)
    padding[1, 4:] = True
    terms = LogitTerms(key_padding=padding)
    out, weights = kernels.attend(q, keys, values, terms, count=count, scale=SCALE, group=GROUP)
    assert weights is None
    sentence = torch.arange(ROWS) // GROUP
    slots = sentence[:, None] * count + torch.arange(count)
    bias = torch.zeros(ROWS, count, dtype=kind).masked_fill_(padding[sentence], -math.inf)
    expected, _ = by_operators(q, keys, values, slots, bias[None])
    torch.testing.assert_close(out, expected, rtol=0, atol=KINDS[kind] * dim)


@torch.no_grad()
def test_a_masked_key_has_no_weight_at_all() -> None:
    terms = LogitTerms(key_padding=torch.tensor([[False, True, False]]))
    _, weights = kernels.attend(
        *(torch.randn(1, 2, 4), *torch.randn(2, 3, 8), terms), count=3, scale=1, need_weights=True
    )
    assert weights is not None
    assert weights[..., 1].eq(0).all()


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("entries", [1, 15, 64, 333, 6040])
@torch.no_grad()
def test_log_sums(kind: torch.dtype, entries: int) -> None:
    logits = 30 * torch.randn(ROWS, entries + 7, dtype=kind)[:, :entries]
    sums = kernels.log_sums(logits)
    actual = logits - sums[:, :1] - sums[:, 1:]
    expected = logits.double().log_softmax(-1).to(kind)
    torch.testing.assert_close(actual, expected, rtol=KINDS[kind], atol=KINDS[kind])


@torch.no_grad()
def test_of_equal_candidates_the_first() -> None:
    logits = torch.zeros(4, 300)
    values, entries, parents = kernels.best(logits, kernels.log_sums(logits), torch.zeros(2, 2), 5)
    assert entries.tolist() == [[0, 1, 2, 3, 4]] * 2
    assert parents.eq(0).all()
    torch.testing.assert_close(values, torch.full((2, 5), -math.log(300)))


@torch.no_grad()
def test_what_is_no_number_is_never_chosen() -> None:
    logits = torch.randn(2, 300)
    sums = kernels.log_sums(logits)
    logits[0, 7] = math.nan
    values, entries, parents = kernels.best(logits, sums, torch.zeros(1, 2), 600)
    assert not values.isnan().any()
    chosen = values.ne(-math.inf)
    assert chosen.sum() == 599
    assert not (entries.eq(7) & parents.eq(0) & chosen).any()


def test_slots_that_no_row_has() -> None:
    slots = torch.tensor([[0, 2, 9], [0, 4, 9]], dtype=torch.int32)  # read: the first two
    actual = kernels.free_slots(slots, 2, 6)
    assert actual is not None
    assert actual.tolist() == [1, 3]
    assert kernels.free_slots(slots.clamp(max=2), 2, 3) is None


@pytest.mark.parametrize("shape", [(1, 5, 3), (9, 64, 16), (300, 130, 50), (7, 1030, 33)], ids=str)
@torch.no_grad()
def test_a_product_in_int8(shape: tuple[int, int, int]) -> None:
    """It is that of the rounded numbers, and off by half a step of each of them at most."""
    rows, inputs, outputs = shape
    x, weight = torch.randn(rows, inputs + 3)[:, :inputs] - 0.3, torch.randn(outputs, inputs)
    packed = kernels.pack(weight)
    bias = torch.randn_like(packed[1])
    room = torch.full((rows, outputs + 2), 7.0)
    out = kernels.multiply(x, *packed, bias, room[:, :outputs])
    assert room[:, outputs:].eq(7).all()
    alone = [kernels.multiply(row[None], *packed, bias, torch.empty(1, outputs)) for row in x]
    assert torch.equal(torch.cat(alone), out)

    x, weight, bias = x.double(), weight.double(), bias[:outputs].double()
    low = x.amin(1, keepdim=True)
    step = (x.amax(1, keepdim=True) - low) / 255  # (rows, 1)
    scale = weight.abs().amax(1) / 64  # (outputs,)
    near = low + step * ((x - low) / step).round()
    rounded = scale[:, None] * (weight / scale[:, None]).round()
    # A number in the middle between two may become either of them.
    ties = 2 * step * weight.abs().amax()
    assert ((out - (near @ rounded.t() + bias)).abs() < ties + 1e-5).all()
    limit = (x.abs().sum(1, keepdim=True) * scale + step * rounded.abs().sum(1)) / 2
    assert ((out - (x @ weight.t() + bias)).abs() < limit + 1e-5).all()


@torch.no_grad()
def test_the_largest_sums_in_int8_and_what_is_not_finite() -> None:
    weight = torch.ones(16, 4096)
    weight[1::2] = -3
    x = torch.ones(6, 4096)
    x[1, 0] = 0.0  # all others are 255 steps above it
    x[2] = 0.7
    x[3] = -2e30
    x[4, 9] = math.nan
    x[5, 4095] = math.inf
    packed = kernels.pack(weight)
    out = kernels.multiply(x, *packed, torch.zeros(16), torch.empty(6, 16))
    torch.testing.assert_close(out[:4], x[:4] @ weight.t(), rtol=1e-5, atol=0)
    assert out[4:].isnan().all()
    with pytest.raises(TypeError, match="float64"):
        kernels.multiply(x.double(), *packed, torch.zeros(16), out.double())


@torch.no_grad()
def test_one_precision() -> None:
    q, memory = torch.randn(2, 1, 4), torch.randn(2, 4)
    with pytest.raises(TypeError, match=r"float32.*float64"):
        kernels.attend(q, memory.double(), memory, LogitTerms(), count=2, scale=1)
    logits = torch.randn(2, 300, dtype=torch.float64)
    scores = torch.randn(1, 2)
    sums = kernels.log_sums(logits)
    actual = kernels.best(logits, sums, scores, 5)
    for one, other in zip(actual, kernels.best(logits, sums, scores.double(), 5), strict=True):
        assert torch.equal(one, other)


def test_gradients_through_a_run_without_them_are_refused() -> None:
    model = build("diet-rel").eval()
    state: dict[str, object] = {}
    tokens = torch.full((2, 2), 5)
    with torch.no_grad():
        encoded = model.encoder(collate(sources((4, 3)), "left"), None)
        model.decoder(tokens[:, :1], encoder_out=encoded, incremental_state=state)
    with pytest.raises(RuntimeError, match=r"torch\.no_grad"):
        model.decoder(tokens, encoder_out=encoded, incremental_state=state)


@pytest.mark.parametrize("there", [False, True], ids=["not compiled", "of other sources"])
def test_without_a_library_of_these_sources_it_says_so(
    there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = Path(kernels.__file__).parent
    for name in kernels._SOURCES:
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    if there:
        built = next(folder.glob("_cpu*"))
        (tmp_path / built.name).write_bytes(built.read_bytes())
        (tmp_path / "step.inc").write_text("// something else\n", encoding="utf-8")
    monkeypatch.setattr(kernels, "__file__", str(tmp_path / "__init__.py"))
    kernels._load.cache_clear()
    try:
        with caplog.at_level(logging.WARNING), torch.no_grad():
            assert not kernels.serve(torch.empty(0))
            assert not kernels.serve(torch.empty(0))
        assert len(caplog.records) == 1
        assert "make setup" in caplog.text
    finally:
        monkeypatch.undo()
        kernels._load.cache_clear()
