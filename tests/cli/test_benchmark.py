"""The benchmark compares equal work, and its numbers are those of the clock."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch

from diet_mt.cli import benchmark
from diet_mt.cli.timing import Spread, interleaved, ratio, spread
from diet_mt.cli.workload import (
    STOCK,
    SYSTEMS,
    Case,
    Settings,
    configuration,
    make_model,
    make_task,
    systems,
)
from diet_mt.errors import UserError

SETTINGS = Settings(
    size="tiny",
    data=None,
    vocabulary=60,
    train_tokens=120,
    decode_tokens=60,
    batches=2,
    decode_length=4,
    dropout=0.1,
    beam=10,
    lenpen=0.6,
    half=False,
    device="cpu",
    options=(),
)


def test_quartiles() -> None:
    assert spread([4.0, 1.0, 3.0, 2.0, 5.0]) == Spread(3.0, 2.0, 4.0)
    assert spread([7.0]) == Spread(7.0, 7.0, 7.0)


def test_ratios_are_taken_round_by_round() -> None:
    # The machine is three times as slow in the second round; ours takes half the time in each.
    assert ratio([1.0, 3.0, 1.0], [2.0, 6.0, 2.0]) == Spread(0.5, 0.5, 0.5)


def test_cases_take_turns_and_the_warmup_is_not_counted() -> None:
    now = 0.0
    order: list[str] = []

    def work(name: str, duration: float) -> None:
        nonlocal now
        now += duration * (10 if len(order) < 4 else 1)  # cold: the two rounds of warming up
        order.append(name)

    settled = []
    seconds = interleaved(
        {"a": lambda: work("a", 1.0), "b": lambda: work("b", 2.0)},
        rounds=3,
        warmup=2,
        settle=lambda: settled.append(len(order)),
        clock=lambda: now,
    )
    assert seconds == {"a": [1.0, 1.0, 1.0], "b": [2.0, 2.0, 2.0]}
    assert order == ["a", "b", "b", "a", "a", "b", "b", "a", "a", "b"]
    # Before and after each turn.
    assert settled == [count for turn in range(10) for count in (turn, turn + 1)]


@pytest.fixture(scope="module")
def cases() -> dict[str, dict[str, Case]]:
    return dict(systems([STOCK, "diet_rel", "diet_abs"], SETTINGS, {}))


def test_every_system_is_there() -> None:
    assert {STOCK, "none", "sinusoidal", "learned", "diet_rel", "diet_abs"} <= set(SYSTEMS)


@pytest.mark.parametrize("size", ["tiny", "base"])
def test_stock_has_our_size(size: str) -> None:
    # Without any positions there is nothing but fairseq's own parameters.
    settings = dataclasses.replace(SETTINGS, size=size)
    counts = []
    for name in (STOCK, "none"):
        cfg = configuration(name, settings)
        model = make_model(cfg, make_task(cfg, settings), settings, None)
        counts.append(sorted((name, tuple(p.shape)) for name, p in model.named_parameters()))
    ours = [entry for entry in counts[1] if not _dead_in_stock(entry[0])]
    assert [entry for entry in counts[0] if not _dead_in_stock(entry[0])] == ours


def _dead_in_stock(name: str) -> bool:
    """Copies of encoder weights that only stock fairseq's fused layer has."""
    parent, _, leaf = name.rpartition(".")
    fused = {"in_proj_weight", "in_proj_bias", "out_proj_weight", "out_proj_bias"}
    fused |= {"fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"}
    return leaf in fused and parent.startswith("encoder.layers.")


def test_all_systems_get_the_same_work(cases: dict[str, dict[str, Case]]) -> None:
    for kind in ("train", "forward", "decode"):
        first, *others = (case[kind].data for case in cases.values())
        assert len(first) == SETTINGS.batches
        assert all(other is first for other in others)
    data = cases[STOCK]["train"].data
    assert all(batch["net_input"]["src_tokens"].numel() <= SETTINGS.train_tokens for batch in data)


def test_a_training_step_trains(cases: dict[str, dict[str, Case]]) -> None:
    for name, case in cases.items():
        before = {key: value.clone() for key, value in case["train"].model.named_parameters()}
        case["train"]()
        after = dict(case["train"].model.named_parameters())
        moved = {key for key in before if not torch.equal(before[key], after[key])}
        live = {key for key in before if not _dead_in_stock(key)}
        # The bias of keys shifts a whole row of logits, which softmax ignores.
        assert {key for key in live - moved if not key.endswith("k_proj.bias")} == set(), name
        assert case["train"].model.training


def test_the_forward_pass_needs_no_gradients(
    cases: dict[str, dict[str, Case]], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = cases["diet_rel"]["forward"]
    seen = []
    monkeypatch.setattr(
        type(case.model),
        "forward",
        lambda self, **batch: seen.append((self.training, torch.is_grad_enabled(), *batch)),
    )
    case()
    assert [entry[:2] for entry in seen] == [(False, False)] * SETTINGS.batches
    assert {"src_tokens", "prev_output_tokens"} <= set(seen[0][2:])


def test_every_hypothesis_has_the_length_asked_for(cases: dict[str, dict[str, Case]]) -> None:
    for case in cases.values():
        case["decode"]()
    # Left to themselves they would not: the check is able to fail.
    decoding = cases["diet_rel"]["decode"]
    decoding.generator.min_len = 1  # type: ignore[attr-defined]
    decoding.generator.max_len_b = 3  # type: ignore[attr-defined]
    with pytest.raises(AssertionError, match="tokens, not 5"):
        decoding()


def test_too_few_batches_are_refused() -> None:
    settings = dataclasses.replace(SETTINGS, train_tokens=10**6)
    with pytest.raises(UserError, match="train: only 1 batches"):
        dict(systems([STOCK], settings, {}))


def test_a_run_and_its_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = "--systems stock none --measures train decode --rounds 3 --warmup 1 --batches 1"
    words += " --vocabulary 60 --train-tokens 60 --decode-tokens 30 --decode-length 3"
    assert benchmark.main([*words.split(), "--device", "cpu"]) == 0
    output = capsys.readouterr()
    assert "tiny cpu train: round 3 of 3" in output.err
    records = [json.loads(line) for line in output.out.split("\n") if line]
    assert [(r["system"], r["measure"]) for r in records] == [
        ("stock", "train"),
        ("none", "train"),
        ("stock", "decode"),
        ("none", "decode"),
    ]
    step, rate = records[0], records[2]
    assert step["median"] == pytest.approx(1000 * sorted(step["seconds"])[1], rel=1e-3)
    assert rate["median"] == pytest.approx(rate["sentences"] / sorted(rate["seconds"])[1], rel=1e-3)
    assert step["ratio_median"] == 1.0
    ours, stock = records[3]["seconds"], rate["seconds"]
    faster = sorted(other / own for own, other in zip(ours, stock, strict=True))[1]
    assert records[3]["ratio_median"] == pytest.approx(faster, abs=1e-3)

    file = tmp_path / "bench.jsonl"
    file.write_text(output.out, encoding="utf-8")
    assert benchmark.main(["--table", str(file)]) == 0
    table = capsys.readouterr().out
    assert "| system | train, ms | to stock | decode, sentences/s | to stock |" in table
    assert table.count("| none |") == 1
    rows = [line for line in table.split("\n") if line.startswith("| ")]
    assert len({line.count("|") for line in rows}) == 1


def test_no_gpu_is_said_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert benchmark.main(["--device", "cuda"]) == 2
    assert capsys.readouterr().err == "error: --device cuda: torch finds no GPU\n"
