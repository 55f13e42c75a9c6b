"""The example of docs/adding-an-encoding.md is a working encoding, as it is printed."""

from __future__ import annotations

import importlib.util
import math
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from diet_mt.layers.multihead import AttentionCall
from diet_mt.positions import NAMES, SHARING, AttentionShape, LayerPositions, PositionEncoding

from .commands.runner import Runner
from .toy import (
    KINDS,
    AttentionProbe,
    attention_positions,
    build,
    close,
    collate,
    copy_content_weights,
    position_parameters,
    sources,
    targets,
)

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "adding-an-encoding.md"
MODULE = "diet_mt.positions.tisa"

any_sharing = pytest.mark.parametrize("sharing", SHARING)


def block(language: str) -> str:
    """The only code block of ``language`` on the page."""
    text = PAGE.read_text(encoding="utf-8")
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The example, imported as the file that the page says it is."""
    path = tmp_path_factory.mktemp("example") / "tisa.py"
    path.write_text(block("python"), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(MODULE, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[MODULE]


@pytest.fixture
def encoding(example: ModuleType, monkeypatch: pytest.MonkeyPatch) -> type[PositionEncoding]:
    """The example's class, registered for one test."""
    found: type[PositionEncoding] = example.Tisa
    monkeypatch.setitem(NAMES, found.name, found)
    return found


def test_the_example_is_a_page_of_code() -> None:
    assert block("python").count("\n") < 45


def bells(tables: dict[str, Tensor], sharing: str, layer: int, head: int, distance: int) -> float:
    """The sum of all bells of a layer and head at ``distance`` i - j."""
    path = "shared" if sharing == "layer-wise" else f"layers.{layer}"
    row = 0 if sharing == "head-wise" else head
    a, b, c = (tables[f"{path}.{name}"][row, 0].tolist() for name in "abc")
    return sum(a[s] * math.exp(-abs(b[s]) * (-distance - c[s]) ** 2) for s in range(5))


@any_sharing
@pytest.mark.parametrize(("start", "queries", "keys"), [(0, 5, 7), (0, 7, 5), (8, 1, 9)])
def test_the_bias_equals_loops(
    encoding: type[PositionEncoding], sharing: str, start: int, queries: int, keys: int
) -> None:
    bias = encoding(sharing=sharing).attention_positions(AttentionShape(2, 3, 4, 9, 11))
    assert bias is not None
    for parameter in bias.parameters():
        torch.nn.init.normal_(parameter)
    bias.double()
    tables = bias.state_dict()
    heads = 1 if sharing == "head-wise" else 3
    parts = bias.for_layers(range(start, start + queries), range(keys))
    assert len(parts) == 2
    for layer, part in enumerate(parts):
        assert part.bias is not None
        assert part.bias.shape == (heads, queries, keys)
        for h in range(heads):
            for i in range(queries):
                for j in range(keys):
                    expected = bells(tables, sharing, layer, h, start + i - j)
                    assert part.bias[h, i, j].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@any_sharing
def test_the_bias_reaches_the_logits_of_a_model(
    encoding: type[PositionEncoding], sharing: str, kind: str
) -> None:
    """A model without positions, called with the bias, computes the same."""
    model, plain = build(encoding.name, sharing), build("none")
    copy_content_weights(model, plain)
    for layer in (0, 1):
        ours, theirs = (AttentionProbe(either, kind, layer) for either in (model, plain))
        query = torch.randn(6, 2, ours.attention.embed_dim, dtype=torch.float64)
        source = query if kind != "cross" else torch.randn(7, 2, 12, dtype=torch.float64)
        bias = attention_positions(model, kind)
        assert bias is not None
        part = bias.for_layers(range(6), range(source.size(0)))[layer]
        assert part.bias is not None
        mask = torch.zeros(2, source.size(0), dtype=torch.bool)
        found = ours(query, source, mask)
        call = AttentionCall(LayerPositions(part.bias), mask)
        close(found, theirs.attention(query, source, call)[0])
        assert not torch.allclose(found, theirs(query, source, mask))


@any_sharing
def test_a_training_step_moves_every_bell(encoding: type[PositionEncoding], sharing: str) -> None:
    model = build(encoding.name, sharing, tables=None)
    parameters = position_parameters(model)
    before = {name: value.detach().clone() for name, value in parameters.items()}
    assert before
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    logits = model(collate(sources()), None, collate(targets()))[0]
    torch.log_softmax(logits, dim=-1)[..., 7].sum().backward()
    optimizer.step()
    for name, value in parameters.items():
        assert (value != before[name]).all(), name


@any_sharing
def test_step_by_step_equals_all_at_once(encoding: type[PositionEncoding], sharing: str) -> None:
    model = build(encoding.name, sharing).eval()
    source = collate(sources())
    previous = collate(targets([6] * source.size(0)))
    encoded = model.encoder(source, None)
    full = model.decoder(previous, encoder_out=encoded)[0]
    state: dict[str, Any] = {}
    for length in range(1, 7):
        step = model.decoder(previous[:, :length], encoder_out=encoded, incremental_state=state)[0]
        close(step, full[:, length - 1 : length])


def patched(text: str, diff: str) -> str:
    """``text`` after the page's ``diff``, whose parts begin with @@."""
    for part in re.split(r"^@@\n", diff, flags=re.MULTILINE):
        lines = part.removesuffix("\n").split("\n")
        old = "".join(f"{line[1:]}\n" for line in lines if line[0] != "+")
        new = "".join(f"{line[1:]}\n" for line in lines)
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def test_the_page_adds_architectures(runner: Runner, tmp_path: Path) -> None:
    """In a copy of the package, changed as the page says, and a process of its own."""
    package = tmp_path / "diet_mt"
    shutil.copytree(ROOT / "diet_mt", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "positions" / "tisa.py").write_text(block("python"), encoding="utf-8")
    registry = package / "positions" / "__init__.py"
    registry.write_text(patched(registry.read_text("utf-8"), block("diff")), encoding="utf-8")
    program = tmp_path / "program.py"
    program.write_text(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import diet_mt; diet_mt.register(); "
        "from fairseq.models import ARCH_MODEL_REGISTRY as known; "
        "print(diet_mt.__file__, *sorted(name for name in known if name.startswith('tisa')))"
    )
    path, *names = runner(str(program)).ok().stdout.split()
    assert Path(path) == package / "__init__.py"
    assert names == ["tisa_base", "tisa_big", "tisa_tiny"]
