"""``diet-mt bench operators``: what a training step dispatches, without a GPU."""

from __future__ import annotations

import json

import pytest
import torch

from diet_mt.bench.operators import Counted, count
from diet_mt.bench.speed import model_words, training_words
from diet_mt.bench.worker import RANDOM_DATA

from ..calling import called

# Of width 16; counts follow the layers alone.
NARROW = {"layers": 6, "embed_dim": 16, "ffn_embed_dim": 32, "attention_heads": 2}
OPERATORS = 1150
WAITS_IN_PASSES = 0


def counts(system: str, precision: str = "bf16", device: str = "meta") -> dict[str, int]:
    words = [RANDOM_DATA, *model_words(system, NARROW), *training_words(0.1), "--max-tokens", "120"]
    return count(words, precision, device, 60)


def test_a_step_of_diet_rel_stays_small() -> None:
    found = counts("diet_rel")
    assert found["operators"] <= OPERATORS
    assert found["waits_in_passes"] <= WAITS_IN_PASSES
    assert found["update"] < 100  # one parameter after another: more than 2,000
    assert found["operators"] == sum(found[part] for part in ("forward", "backward", "update"))


def test_stock_fairseq_runs_without_the_plugin(capsys: pytest.CaptureFixture[str]) -> None:
    """Which updates parameter by parameter."""
    how = "--size tiny --precisions bf16 --device cpu --tokens 200 --vocabulary 60"
    assert called("bench", "operators", "--systems", "stock", *how.split()) == 0
    (record,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (record["system"], record["precision"], record["device"]) == ("stock", "bf16", "cpu")
    assert record["update"] > 1000


def test_what_is_counted() -> None:
    x = torch.ones(3, 4, device="meta", requires_grad=True)
    with Counted("meta") as counted:
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
