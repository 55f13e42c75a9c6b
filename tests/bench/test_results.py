"""Scripts in results/: tables, counts of operators."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

from diet_mt.bench.speed import model_words, training_words
from diet_mt.bench.worker import RANDOM_DATA
from diet_mt.system.errors import UserError

from .. import toy
from ..commands.runner import ROOT
from ..toy import each_encoding

RESULTS = ROOT / "results"
SCRIPTS = sorted([*RESULTS.glob("*/table.py"), *RESULTS.glob("*/measure.py")])
each_script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.parent.name)

operators: Any = runpy.run_path(str(RESULTS / "benchmark" / "operators.py"))


@each_script
def test_a_page_is_made_of_its_rows(script: Path, tmp_path: Path) -> None:
    page: Any = runpy.run_path(str(script))["page"]
    rows = sorted(script.parent.glob("*.jsonl"))
    assert page(rows) == script.parent.with_suffix(".md").read_text(encoding="utf-8")
    for text in ("", '{"median": 1}\n'):
        (tmp_path / "r.jsonl").write_text(text, encoding="utf-8")
        with pytest.raises(UserError, match=r"r\.jsonl"):
            page([tmp_path / "r.jsonl"])


# Of width 16; counts follow the layers alone.
NARROW = {"layers": 6, "embed_dim": 16, "ffn_embed_dim": 32, "attention_heads": 2}
OPERATORS = 1040  # 1,033 in torch 2.13


def test_a_step_of_diet_rel_stays_small() -> None:
    words = [*model_words("diet_rel", NARROW), *training_words(0.1), "--max-tokens", "120"]
    counted = operators["count"]([RANDOM_DATA, *words], "bf16", "meta", 60)
    assert counted["operators"] <= OPERATORS
    assert counted["waits_in_passes"] == 0
    assert counted["waits"] <= 5  # those of fairseq's trainer
    assert counted["update"] < 100  # one parameter after another: more than 2,000
    assert counted["operators"] == sum(counted[part] for part in ("forward", "backward", "update"))


@each_encoding
def test_no_pass_waits(encoding: str, sharing: str | None) -> None:
    model = toy.build(encoding, sharing).to("meta")
    batch = toy.collate(toy.sources(), "left"), toy.collate(toy.targets())
    source, previous = (tokens.to("meta") for tokens in batch)
    with operators["as_on_a_gpu"]("meta"), operators["Counted"]("meta") as counted:
        model(source, None, previous)[0].sum().backward()
    assert counted.kernels.total() > 100
    assert not counted.waits.total()


def test_what_is_counted() -> None:
    x = torch.ones(3, 4, device="meta", requires_grad=True)
    with operators["Counted"]("meta") as counted:
        counted.part = "forward"
        y = (x.transpose(0, 1) * 2).sum()
        counted.part = "backward"
        y.backward()  # a one, times 2, laid out as x
        counted.part = "update"
        assert bool(y.isfinite())
        assert y.cpu().device.type == "cpu"
        torch.tensor(1.0, device="meta")
        torch.ones(3) * 2  # not on the device
    assert counted.kernels["forward"] == 2
    assert counted.views["forward"] == 1
    assert counted.kernels["backward"] == 3
    assert counted.waits == {"update": 3}
