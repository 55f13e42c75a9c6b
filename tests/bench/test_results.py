"""Scripts in results/: tables, counts of operators, growth of a model, comparison of searches."""

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

SMALL = {"layers": 2, "embed_dim": 16, "ffn_embed_dim": 12, "attention_heads": 2}
LARGE = {"layers": 4, "embed_dim": 64, "ffn_embed_dim": 36, "attention_heads": 4}
grow = runpy.run_path(str(RESULTS / "benchmark" / "grow.py"))["grow"]
operators: Any = runpy.run_path(str(RESULTS / "benchmark" / "operators.py"))
searches: Any = runpy.run_path(str(RESULTS / "search_parity" / "compare.py"))


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


def test_comparison_of_hypotheses() -> None:
    def hypothesis(tokens: list[int], score: float) -> dict[str, Any]:
        by_token = torch.full((len(tokens),), score / len(tokens))
        return {
            "tokens": torch.tensor(tokens),
            "score": torch.tensor(score),
            "positional_scores": by_token,
        }

    one, two, twin = (
        hypothesis(tokens, score)
        for tokens, score in (([5, 6, 2], -1.0), ([7, 2], -2.0), ([8, 2], -2.001))
    )
    compare = searches["compare"]
    record = compare([8, 9], [[one, two], [two]], [[one, two], [two]])
    assert (record["hypotheses"], record["equal"], record["differences"]) == (3, 3, [])
    near = hypothesis([5, 6, 2], -1.003)
    assert compare([8], [[one]], [[near]])["score_error"] == pytest.approx(0.003, abs=1e-6)
    record = compare([4], [[one, two, twin]], [[one, twin, two]])
    (difference,) = record["differences"]
    assert (record["equal"], difference["sentence"], difference["ranks"]) == (1, 4, [2, 3])
    assert difference["largest_gap"] == pytest.approx(0.001, rel=0.01)
    (difference,) = compare([4], [[one]], [[one, two]])["differences"]
    assert (difference["ranks"], difference["hypotheses"]) == ([2], [1, 2])
