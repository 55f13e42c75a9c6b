"""The code of docs/positions.md and of the README against loops."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from diet_mt import positions
from diet_mt.positions import CROSS, DECODER, ENCODER, KINDS, OPTIONS, create
from diet_mt.positions.base import AttentionPositions, InputPositions

from .. import oracle
from ..commands.runner import ROOT
from ..oracle.attention import one_query
from ..toy import ENCODINGS, encoding_of, options_by_field
from .cases import ALL, FORMS

ACTING = {kind: [name for name in ENCODINGS if kind in ALL[name].acts_in] for kind in KINDS}
CHANGES_QUERIES = ("rotary", "pope", "transformer-xl")
IN_LOGITS = [
    name
    for name in ACTING[ENCODER]
    if name not in CHANGES_QUERIES and "projected" not in ALL[name].options
]
# Heading -> the encodings that take the place of the one in its code.
EXAMPLES = {
    "README": ["diet-rel"],
    "A bias of the logits": IN_LOGITS,
    "Rotated queries and keys": ["rotary", "pope"],
    "Vectors of distances on keys and values": ["shaw"],
    "Any encoding": ACTING[ENCODER],
    "A decoding step": ACTING[DECODER],
    "Cross-attention": [name for name in ACTING[CROSS] if name not in CHANGES_QUERIES],
    "Randomized positions": IN_LOGITS,
    "Long sequences": ["diet-rel", "t5", "alibi-trained"],
    "At the input": ["learned", "sinusoidal"],
}
# Heading -> options in its code.
GIVEN = {"Vectors of distances on keys and values": {"clip": 4, "values": True}}


def code_by_heading() -> dict[str, str]:
    """The code under each heading of the page, after that of its introduction."""
    block = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    page = (ROOT / "docs" / "positions.md").read_text(encoding="utf-8")
    first, *rest = re.split(r"^## (.+)$", page, flags=re.MULTILINE)
    (shared,) = block.findall(first)
    sections = zip(rest[::2], map(block.findall, rest[1::2]), strict=True)
    (readme,) = block.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    return {"README": readme} | {heading: shared + code for heading, (code,) in sections}


def options_of(name: str) -> dict[str, Any]:
    """Options that ``create`` gets for a form of an encoding, by field."""
    return options_by_field(name) if name in FORMS else {}


def of_query(
    name: str, example: Any, options: dict[str, Any], b: int, h: int, i: int
) -> list[float]:
    """The output (D,) of query i of head h in sentence b, by loops."""
    tensors, tables, (kind, heads, head_dim, max_keys), content = example
    q = tensors["q"][b, h, i].tolist()
    k, v = (tensors.get(f"source_{x}", tensors[x])[b, h].tolist() for x in "kv")
    at = tensors["at"].tolist() if "at" in tensors else range(len(k))
    padding = tensors["padding"][b].tolist() if "padding" in tensors else [False] * len(k)
    seen = [j for j in range(len(k)) if not padding[j] and (kind != DECODER or j <= i)]
    setting = oracle.Setting(
        *(kind, 0, heads, head_dim, max_keys, ALL[name].sharing),
        {path: table.numpy() for path, table in tables.items()},
        {OPTIONS[field].attribute: value for field, value in options.items()},
        content={path: weight.numpy() for path, weight in content.items()},
    )
    equations = ALL[name].equations(setting)
    keys, values = ({at[j]: x[j] for j in seen} for x in (k, v))
    scale = (head_dim * equations.divided_by) ** -0.5
    return one_query(equations, (h, at[i]), q, keys, values, scale, {})[1]


def rows_of(name: str, example: Any) -> list[list[float]]:
    """What is added to the embeddings, (T, E), by loops."""
    (_, length, width), tables = example[0]["x"].shape, example[1]
    row = ALL[name].input_row
    return [[row(tables, i, c, width) for c in range(width)] for i in range(length)]


def values_of(code: str) -> Any:
    """Runs ``code``: its tensors, and parameters, sizes and content of the encoding."""
    scope: dict[str, Any] = {}
    torch.manual_seed(1)
    exec(code, scope)
    kinds = AttentionPositions, InputPositions
    (module,) = (x for x in scope.values() if isinstance(x, kinds))
    shape = getattr(module, "shape", None)
    sizes = shape and (shape.kind, shape.heads, shape.head_dim, shape.max_keys)
    tensors = {name: x.detach() for name, x in scope.items() if isinstance(x, torch.Tensor)}
    layers = getattr(module, "attention", ())
    content = {name: x for layer in layers for name, x in layer.state_dict().items()}
    return tensors, module.state_dict(), sizes, content


@pytest.fixture
def _float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("_float64")
def test_every_example_equals_the_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are drawn, since that of DIET-REL starts at 0."""

    def create_drawn(*given: Any, **options: Any) -> nn.Module:
        module = create(*given, **options)
        for parameter in module.parameters():
            nn.init.normal_(parameter, std=0.5)
        if options.get("shared_projections"):
            width = options["heads"] * options["head_dim"]
            parts = {f"{x}_proj": nn.Linear(width, width) for x in "kq"}
            module.attention = [nn.ModuleDict(parts)]
        return module

    monkeypatch.setattr(positions, "create", create_drawn)
    codes = code_by_heading()
    encoding = re.compile(r"(?<=create\()(\s*)\"\w+\"|(?<=build_position\()\"\w+\"")
    assert codes.keys() == EXAMPLES.keys()
    for heading, name in ((heading, name) for heading, names in EXAMPLES.items() for name in names):
        words = [f'"{encoding_of(name)}"', *(f"{key}={x}" for key, x in options_of(name).items())]
        example = values_of(encoding.sub(rf"\1{', '.join(words)}", codes[heading]))
        tensors = example[0]
        if "out" not in tensors:
            added = tensors["x"] - tensors["words"]
            expected = torch.tensor(rows_of(name, example), dtype=added.dtype)
            torch.testing.assert_close(added[1], expected, rtol=0, atol=1e-6)
            continue
        options, out = ALL[encoding_of(name)].options | options_of(name), tensors["out"]
        options = options | GIVEN.get(heading, {})
        last = out.size(2) - 1
        for h, i in ((0, 7 % out.size(2)), (out.size(1) - 1, last)):
            by_loops = torch.tensor(of_query(name, example, options, 1, h, i), dtype=out.dtype)
            place = f"{heading}: {name}, head {h}, query {i}"
            torch.testing.assert_close(out[1, h, i], by_loops, rtol=0, atol=1e-10, msg=place)


@pytest.mark.parametrize("name", ["diet_rel", "t5"])
@pytest.mark.parametrize(
    "device",
    [pytest.param("cpu", marks=pytest.mark.slow), pytest.param("cuda", marks=pytest.mark.gpu)],
)
def test_compiled_flex_attention_adds_the_bias(name: str, device: str) -> None:
    """In float32, and on a GPU also in the gradient of the tables."""
    from torch.nn.attention.flex_attention import flex_attention

    encoding = create(name, heads=4, head_dim=16, max_length=300).to(device)
    (table,) = encoding.parameters()
    nn.init.normal_(table)
    q, k, v, up = torch.randn(4, 2, 4, 300, 16, device=device)
    at = range(300), range(300)
    bias = encoding.for_layers(*at)[0].logit_bias(q, k, encoding.scale)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    attend: Any = torch.compile(flex_attention)
    with torch.set_grad_enabled(device == "cuda"):  # there is no backward pass on a CPU
        out = attend(q, k, v, score_mod=encoding.score_mods(*at)[0])
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-4)
    if device == "cuda":
        (ours,), (theirs,) = (torch.autograd.grad(each, table, up) for each in (out, expected))
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)
