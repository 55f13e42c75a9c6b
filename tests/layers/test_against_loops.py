"""Every attention module of a built model against the loops of ``tests/oracle/``.

What goes into a module is recorded while the whole model runs; the loops get that, the raw weights
and the lengths of the sentences, and must arrive at what came out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from diet_mt.models.diet_transformer import DietTransformerModel
from diet_mt.nn import attention
from diet_mt.positions import factors
from diet_mt.positions.factors import FactorTerms

from .. import oracle
from ..positions.cases import ALL, DYNAMIC
from ..toy import (
    CASES,
    KINDS,
    OPTIONS,
    PAD,
    SIZES,
    SOURCE_LENGTHS,
    AttentionProbe,
    Call,
    attention_calls,
    attention_positions,
    build,
    collate,
    each_encoding,
    each_inside,
    every_encoding,
    position_parameters,
    real,
    sharing_modes,
    sources,
    targets,
)

# float64 throughout, sums of at most 20 terms of order 1: only the order of the sums differs.
ROUNDING = 1e-11


def numbers(tensor: Tensor) -> oracle.Array:
    return tensor.detach().numpy()


def raw_tables(module: nn.Module | None) -> dict[str, oracle.Array]:
    if module is None:
        return {}
    return {name: numbers(parameter) for name, parameter in module.named_parameters()}


def raw_projections(module: nn.Module) -> oracle.Projections:
    layers = [getattr(module, f"{name}_proj") for name in ("q", "k", "v", "out")]
    return oracle.Projections(*((numbers(x.weight), numbers(x.bias)) for x in layers))


def visible_keys(kind: str) -> Callable[[int, int, int], bool]:
    """Sources are masked where they end; in decoder self-attention a query sees what precedes it.

    No mask for the padding of targets: it stands behind every real query.
    """
    if kind == "decoder":
        return lambda b, i, j: j <= i
    return lambda b, i, j: j < SOURCE_LENGTHS[b]


def setting(
    place: tuple[str, int],
    encoding: str,
    sharing: str | None,
    tables: nn.Module | None,
    call: Call,
    **more: bool,
) -> oracle.Setting:
    """One layer with the parameters of ``tables``."""
    kind, layer = place
    stack = "encoder" if kind == "encoder" else "decoder"
    heads = SIZES[f"{stack}_attention_heads"]
    return oracle.Setting(
        *(kind, layer, heads, SIZES[f"{stack}_embed_dim"] // heads),
        keys=SIZES["max_target_positions" if kind == "decoder" else "max_source_positions"],
        sharing=sharing,
        tables=raw_tables(tables),
        options=OPTIONS.get(encoding, {}),
        content=raw_tables(call.module),
        **more,
    )


def by_loops(
    equations: oracle.Encoding, call: Call, divisor: int, **more: Any
) -> tuple[Tensor, Tensor]:
    """Output (T, B, E) and weights (B, H, T, S); q . k is divided by the root of ``divisor``."""
    out, weights = oracle.attention(
        *(numbers(call.query), numbers(call.key), raw_projections(call.module)),
        heads=equations.at.heads,
        scale=(divisor * equations.divided_by) ** -0.5,
        encoding=equations,
        visible=visible_keys(equations.at.kind),
        **more,
    )
    return torch.from_numpy(out), torch.from_numpy(weights)


def expected(
    model: DietTransformerModel,
    encoding: str,
    sharing: str | None,
    place: tuple[str, int],
    call: Call,
) -> tuple[Tensor, Tensor]:
    """Output (T, B, E) and weights (B, H, T, S) of the loops."""
    kind, layer = place
    skipped = model.cfg.position_layers == "1:" and layer == 0
    skipped |= model.cfg.position_in not in (None, kind)
    equations = oracle.Encoding if skipped else ALL[encoding].equations
    at = setting(place, encoding, sharing, attention_positions(model, kind), call)
    by_model = model.cfg.attention_scale == "model"
    return by_loops(equations(at), call, at.head_dim * (at.heads if by_model else 1))


def assert_every_attention_module_equals_the_loops(
    encoding: str, sharing: str | None, side: str = "left", **options: Any
) -> None:
    model = build(encoding, sharing, **options)
    with attention_calls(model) as calls:
        model(collate(sources(), side), None, collate(targets()), alignment_layer=2)
    assert calls.keys() == {(kind, layer) for kind in KINDS for layer in range(3)} - {
        ("encoder", 2)
    }
    with_weights = []
    for place, call in calls.items():
        out, weights = expected(model, encoding, sharing, place, call)
        assert call.output.shape == out.shape
        torch.testing.assert_close(call.output, out, rtol=0, atol=ROUNDING, msg=str(place))
        if call.weights is not None:
            torch.testing.assert_close(call.weights, weights, rtol=0, atol=ROUNDING)
            with_weights.append(place)
    assert with_weights == [("cross", 2)], "no other attention returns its weights"


@pytest.mark.parametrize(
    ("fused", "side", "scale"),
    [(False, "left", "head"), (True, "right", "model")],
    ids=["own-left-head", "fused-right-model"],
)
@every_encoding
def test_every_attention_module_equals_the_loops(
    encoding: str,
    sharing: str | None,
    fused: bool,
    side: str,
    scale: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attention, "_fused_pays", lambda *_: fused)
    assert_every_attention_module_equals_the_loops(encoding, sharing, side, attention_scale=scale)


@pytest.mark.parametrize("fused", [False, True], ids=["own", "fused"])
@pytest.mark.parametrize(
    ("encoding", "sharing"), [case for case in CASES if case[0] in ("diet-abs", "tupe-abs")]
)
def test_factors_as_columns_of_queries_and_keys(
    encoding: str, sharing: str, fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As over long sentences: outputs, and gradients by finite differences."""
    monkeypatch.setattr(attention, "_fused_pays", lambda *_: fused)
    monkeypatch.setattr(factors, "APPEND_FROM", 3)
    assert_every_attention_module_equals_the_loops(encoding, sharing)
    for kind in KINDS:
        positions = attention_positions(build(encoding, sharing), kind)
        assert positions is not None
        terms = positions.for_layers(range(3), range(4))
        assert {type(each) for each in terms} == {FactorTerms}
        assert_gradients(encoding, sharing, kind)


# Options that change the equations, beyond those of the toy models.
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("kerple", {"position_kernel": "power"}),
    ("rotary", {"position_base": 50.0, "position_fraction": 0.5}),
    ("rotary", DYNAMIC),
]


@pytest.mark.parametrize(("encoding", "options"), VARIANTS)
def test_other_options(
    encoding: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(OPTIONS, encoding, options)
    for sharing in sharing_modes(encoding):
        assert_every_attention_module_equals_the_loops(encoding, sharing)


@pytest.mark.parametrize(("side", "options", "part"), [
    ("left", {"position_layers": "1:"}, ".layers.0."),
    ("right", {"position_in": "encoder"}, "decoder."),
    ("left", {"position_in": "decoder"}, "encoder"),
], ids=["layers", "encoder", "decoder"])  # fmt: skip
@each_inside
def test_attention_without_positions(
    encoding: str, sharing: str | None, side: str, options: dict[str, Any], part: str
) -> None:
    """It is that of a model without positions; the other tables keep their names."""
    if part == "encoder" and "projected" in ALL[encoding].options:
        return  # it mixes keys in the encoder
    assert_every_attention_module_equals_the_loops(encoding, sharing, side, **options)
    named = set(position_parameters(build(encoding, sharing, **options)))
    whole = set(position_parameters(build(encoding, sharing)))
    assert named == {name for name in whole if part not in name or "embed_positions" in name}


@pytest.mark.parametrize("side", ["left", "right"])
@each_encoding
def test_the_input_of_each_stack_equals_the_formula(
    encoding: str, sharing: str | None, side: str
) -> None:
    """Embedding times sqrt(E), plus a row of the position, counted from the first real token."""
    model = build(encoding, sharing)
    rows, outputs = sources(), targets()
    with attention_calls(model) as calls:
        model(collate(rows, side), None, collate(outputs, side))
    padding = collate(rows).eq(PAD)
    assert not calls["encoder", 0].query.transpose(0, 1)[padding].any(), "as in fairseq"
    for kind, stack, sentences in (
        ("encoder", model.encoder, rows),
        ("decoder", model.decoder, outputs),
    ):
        actual = real(calls[kind, 0].query.transpose(0, 1), sentences)
        tables = raw_tables(stack.embed_positions)
        width = actual[0].size(1)
        words = torch.zeros(44, width, dtype=torch.float64)
        given = stack.embed_tokens.weight
        words[:, : given.size(1)] = given
        for sentence, vectors in zip(sentences, actual, strict=True):
            for position, token in enumerate(sentence):
                term = [ALL[encoding].input_row(tables, position, c, width) for c in range(width)]
                by_hand = words[token] * width**0.5 + torch.tensor(term, dtype=torch.float64)
                # Sinusoids are stored in float32: half a unit of 1 is 6e-8.
                torch.testing.assert_close(vectors[position], by_hand, rtol=0, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
@each_encoding
def test_gradients_of_inputs_and_tables(encoding: str, sharing: str | None, kind: str) -> None:
    assert_gradients(encoding, sharing, kind)


def assert_gradients(encoding: str, sharing: str | None, kind: str) -> None:
    """torch.autograd.gradcheck: against finite differences in a random direction, in float64."""
    model = build(encoding, sharing)
    probe = AttentionProbe(model, kind, layer=1)
    tables = {
        name: parameter.detach().clone().requires_grad_()
        for name, parameter in position_parameters(probe).items()
    }
    stack = "encoder" if kind == "encoder" else "decoder"
    length, batch = 3, 2
    query = torch.randn(length, batch, SIZES[f"{stack}_embed_dim"], dtype=torch.float64)
    source = query
    if kind == "cross":
        source = torch.randn(4, batch, SIZES["encoder_embed_dim"], dtype=torch.float64)
    mask = torch.zeros(batch, source.size(0), dtype=torch.bool)
    mask[1, -1] = True

    def run(*given: Tensor) -> Any:
        q, rest = given[0], given[1:]
        s = q if kind != "cross" else rest[0]
        values = rest if kind != "cross" else rest[1:]
        swapped = dict(zip(tables, values, strict=True))
        return torch.func.functional_call(probe, swapped, (q, s, mask))

    inputs = [query] if kind != "cross" else [query, source]
    given = [x.clone().requires_grad_() for x in inputs] + list(tables.values())
    assert torch.autograd.gradcheck(run, given, fast_mode=True)
