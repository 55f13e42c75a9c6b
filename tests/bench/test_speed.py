"""``diet-mt bench speed``: records, and what it refuses."""

from __future__ import annotations

import json

import pytest
import torch

from diet_mt.bench import rows, speed
from diet_mt.bench.speed import STOCK, summary

from ..processes import called

SMALL = "--measures decode --batches 1 --vocabulary 60 --decode-tokens 30 --threads 1 --device cpu"


def test_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ctranslate2")
    published = "t5 --position-in encoder,decoder"
    words = f"{SMALL} --decode-length 0 --rounds 3 --warmup 0 --beam 2 --systems"
    words = (*words.split(), "ctranslate2", STOCK, "diet_rel:fairseq", published)
    assert called("bench", "speed", *words) == 0
    output = capsys.readouterr()
    assert "tiny cpu decode: round 3 of 3" in output.err
    records = {r["system"]: r for r in map(json.loads, output.out.strip().split("\n"))}
    assert list(records) == ["ctranslate2", STOCK, "diet_rel:fairseq", published]
    stock, ours, peer = records[STOCK], records["diet_rel:fairseq"], records["ctranslate2"]
    assert stock["threads"] == 1
    assert stock["median"] == pytest.approx(
        stock["sentences"] / sorted(stock["seconds"])[1], rel=1e-3
    )
    faster = (other / own for own, other in zip(ours["seconds"], stock["seconds"], strict=True))
    assert ours["ratio_median"] == pytest.approx(sorted(faster)[1], abs=1e-3)
    # Translations are compared where the model decides their length.
    assert (peer["equal_to"], peer["compared"]) == (STOCK, stock["sentences"])
    assert "inter_threads 1, intra_threads 1" in peer["setting"]
    assert "equal" not in ours
    # The speed of another search is not that of the encoding.
    positions = {name: row["positions"] for name, row in records.items() if "positions" in row}
    assert positions == {
        published: "t5 sharing=layer-wise buckets=32 max-distance=128 in=encoder,decoder scale=head"
    }


def test_precisions_and_loads_in_one_run(capsys: pytest.CaptureFixture[str]) -> None:
    """One that fails is left out, and named at the end; ratios are to the fastest of stock."""
    words = "--measures train --vocabulary 60 --threads 1 --device cpu --rounds 2 --warmup 0"
    loads = "--train-tokens 64 24 --lengths 8+7 12+4 --lengths 6+6"
    systems = [STOCK, "stock --bf16", "none --no-such-option"]
    assert called("bench", "speed", *words.split(), *loads.split(), "--systems", *systems) == 2
    output = capsys.readouterr()
    assert output.err.strip().split("\n")[-1].endswith(" none --no-such-option")
    assert "status 2 (worker.py: error: unrecognized arguments: --no-such-option)" in output.err
    records = list(map(json.loads, output.out.strip().split("\n")))
    assert [row["system"] for row in records] == 4 * systems[:2]
    assert [row["precision"] for row in records] == 4 * ["fp32", "bf16"]
    assert [row["load"] for row in records[::2]] == [
        {"tokens": tokens, "lengths": lengths}
        for tokens in (64, 24)
        for lengths in ([[8, 7], [12, 4]], [[6, 6]])
    ]
    assert [row["sentences"] for row in records[::2]] == [8 + 1, 8, 1 + 1, 1]
    row, other = records[:2]
    fastest = min((sum(each["seconds"]), each["system"]) for each in (row, other))[1]
    assert {each["over"] for each in records[:2]} == {fastest}


@pytest.mark.parametrize(
    ("words", "datum"),
    [
        ("--lengths 16+x", "--lengths"),
        ("--checkpoint stock=gone.pt", "gone.pt"),
        ("--device cuda", "--device cuda"),
    ],
)
def test_a_wrong_value_is_named(
    words: str, datum: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert called("bench", "speed", *words.split()) == 2
    error = capsys.readouterr().err
    assert datum in error
    assert error.count("\n") == 1


def test_ctranslate2_is_left_out_where_it_is_not_installed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "find_spec", lambda name: None)
    assert called("bench", "speed", "--systems", "ctranslate2", "--device", "cpu") == 2
    left_out, error = capsys.readouterr().err.strip().split("\n")
    assert left_out.startswith("ctranslate2: ")
    assert error.startswith("error: ")


def test_a_step_is_a_time_and_its_ratio_is_to_stock_round_by_round() -> None:
    facts = {"batches": 2, "sentences": 5}
    record = summary("train", [0.2, 0.4, 0.8], [0.1, 0.4, 1.6], facts)
    assert (record["unit"], record["median"], record["ratio_median"]) == ("ms", 200.0, 1.0)
    assert (record["rounds"], record["batches"]) == (3, 2)
    assert "ratio_median" not in summary("train", [0.2], None, facts)


def test_quartiles_and_ratios_of_rounds() -> None:
    assert rows.quartiles("ms_", [4, 1, 3, 2, 5]) == {"ms_median": 3, "ms_low": 2, "ms_high": 4}
    assert rows.quartiles("", [7.0]) == {"median": 7.0, "low": 7.0, "high": 7.0}
    # The machine is three times as slow in the second round; ours takes half the time in each.
    assert set(rows.ratios([1.0, 3.0, 1.0], [2.0, 6.0, 2.0]).values()) == {0.5}


def test_systems_take_turns_and_the_warmup_is_not_counted() -> None:
    order: list[str] = []

    def turn(name: str, duration: float) -> float:
        order.append(name)
        return duration * (10 if len(order) <= 4 else 1)  # cold in the two rounds of warm-up

    turns = {"a": lambda: turn("a", 1.0), "b": lambda: turn("b", 2.0)}
    seconds = rows.interleaved(turns, rounds=3, warmup=2, label="")
    assert seconds == {"a": [1.0, 1.0, 1.0], "b": [2.0, 2.0, 2.0]}
    assert "".join(order) == "abbaabbaab"
    past = rows.interleaved(turns, rounds=3, warmup=0, label="", until=0.0)
    assert past == {"a": [1.0], "b": [2.0]}


def test_factors_need_far_less_than_the_table() -> None:
    """At 1024 tokens a table of four heads has 16 MiB, and there are three of them."""
    table, factors = (
        speed.peak(f"diet_abs, {path}", "train", 1024)["peak_bytes"]
        for path in ("table", "factors")
    )
    assert table > 16 * 2**20
    assert factors < table / 1.5


def test_records_of_memory(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "peak", lambda case, kind, n: {"peak_bytes": n, "seconds": 1})
    monkeypatch.setattr(speed, "LONGEST_TRAINING", {"stock": 2})
    assert called("bench", "memory", "--lengths", "2", "4") == 0
    records = list(map(json.loads, capsys.readouterr().out.strip().split("\n")))
    runs = {(r["measure"], r["case"], r["length"], r["peak_bytes"]) for r in records}
    assert runs == {
        (measure, case, length, length)
        for measure in ("forward", "train")
        for case in speed.CASES
        for length in (2, 4)
    } - {("train", "stock", 4, 4)}
