"""Scripts in results/: tables of measurements, and the growth of a trained model."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

from diet_mt.system.errors import UserError

from .. import toy
from ..commands.runner import ROOT

RESULTS = ROOT / "results"
SCRIPTS = sorted([*RESULTS.glob("*/table.py"), *RESULTS.glob("*/measure.py")])
each_script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.parent.name)

SMALL = {"layers": 2, "embed_dim": 16, "ffn_embed_dim": 12, "attention_heads": 2}
LARGE = {"layers": 4, "embed_dim": 64, "ffn_embed_dim": 36, "attention_heads": 4}
grow = runpy.run_path(str(RESULTS / "benchmark" / "grow.py"))["grow"]


@each_script
def test_a_page_is_made_of_its_rows(script: Path, tmp_path: Path) -> None:
    page: Any = runpy.run_path(str(script))["page"]
    rows = sorted(script.parent.glob("*.jsonl"))
    assert page(rows) == script.parent.with_suffix(".md").read_text(encoding="utf-8")
    for text in ("", '{"median": 1}\n'):
        (tmp_path / "r.jsonl").write_text(text, encoding="utf-8")
        with pytest.raises(UserError, match=r"r\.jsonl"):
            page([tmp_path / "r.jsonl"])


def _of_size(encoding: str, size: dict[str, int], seed: int) -> torch.nn.Module:
    both = {f"{side}_{name}": size[name] for name in size for side in ("encoder", "decoder")}
    model = toy.build(encoding, seed=seed, share_all_embeddings=True, **both)
    torch.manual_seed(seed)
    for name, parameter in model.named_parameters():  # norms and biases begin as ones and zeros
        if name.endswith("bias") or "layer_norm" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    for module in model.modules():  # each norm of a layer that adds nothing would shrink a little
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 0.0
    return model.eval()


@pytest.mark.parametrize("encoding", ["none", "diet-rel", "diet-abs"])
def test_a_grown_model_computes_the_same(encoding: str) -> None:
    small, large = _of_size(encoding, SMALL, 1), _of_size(encoding, LARGE, 2)
    large.load_state_dict(grow(small.state_dict(), SMALL, LARGE))
    source, target = toy.collate(toy.sources()), toy.collate(toy.targets())
    lengths = torch.tensor(toy.SOURCE_LENGTHS)
    with torch.no_grad():
        ours, theirs = (model(source, lengths, target)[0] for model in (large, small))
    assert torch.allclose(ours, theirs, atol=1e-9)
