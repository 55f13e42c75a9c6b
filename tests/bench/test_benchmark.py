"""A run of the benchmark and its table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from diet_mt.bench import systems
from diet_mt.bench.benchmark import _groups
from diet_mt.bench.systems import STOCK, SYSTEMS

from ..calling import called


def test_every_system_is_there() -> None:
    assert {STOCK, "none", "sinusoidal", "learned", "diet_rel", "diet_abs"} <= set(SYSTEMS)
    assert {"ctranslate2", "diet_rel:fairseq", "diet_abs:fairseq"} <= set(SYSTEMS)


def test_a_run_and_its_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = "--systems stock none diet_rel:fairseq --measures train decode --rounds 3 --warmup 1"
    words += " --batches 1 --vocabulary 60 --train-tokens 60 --decode-tokens 30 --decode-length 3"
    assert called("bench", "speed", *words.split(), "--device", "cpu", "--threads", "1") == 0
    output = capsys.readouterr()
    assert "tiny cpu train: round 3 of 3" in output.err
    records = [json.loads(line) for line in output.out.split("\n") if line]
    assert [(r["system"], r["measure"]) for r in records] == [
        ("stock", "train"),
        ("none", "train"),
        ("stock", "decode"),
        ("none", "decode"),
        ("diet_rel:fairseq", "decode"),
    ]
    step, rate = records[0], records[2]
    assert step["threads"] == 1
    assert step["median"] == pytest.approx(1000 * sorted(step["seconds"])[1], rel=1e-3)
    assert rate["median"] == pytest.approx(rate["sentences"] / sorted(rate["seconds"])[1], rel=1e-3)
    assert step["ratio_median"] == 1.0
    ours, stock = records[3]["seconds"], rate["seconds"]
    faster = sorted(other / own for own, other in zip(ours, stock, strict=True))[1]
    assert records[3]["ratio_median"] == pytest.approx(faster, abs=1e-3)

    file = tmp_path / "bench.jsonl"
    file.write_text(output.out, encoding="utf-8")
    assert called("bench", "speed", "--table", str(file)) == 0
    table = capsys.readouterr().out
    rows = [line for line in table.split("\n") if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in rows]
    assert cells[0] == ["system", "train, ms", "to stock", "decode, sentences/s", "to stock"]
    assert [row[0] for row in cells[1:]] == ["stock", "none", "diet_rel (fairseq's search)"]
    assert cells[3][1:3] == ["", ""]


def test_translations_are_compared_where_the_model_decides_their_length(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = "--systems none ctranslate2 stock --measures decode --rounds 1 --warmup 1 --device cpu"
    words += " --batches 1 --vocabulary 60 --decode-tokens 30 --decode-length 0 --threads 1"
    pytest.importorskip("ctranslate2")
    assert called("bench", "speed", *words.split()) == 0
    output = capsys.readouterr()
    records = {r["system"]: r for r in map(json.loads, output.out.strip().split("\n"))}
    peer = records["ctranslate2"]
    assert (peer["equal_to"], peer["compared"]) == (STOCK, records[STOCK]["sentences"])
    said = f"ctranslate2: {peer['equal']} of {peer['compared']} translations are those of stock"
    assert said in output.err
    assert "equal" not in records["none"]
    file = tmp_path / "bench.jsonl"
    file.write_text(output.out, encoding="utf-8")
    assert called("bench", "speed", "--table", str(file)) == 0
    table = capsys.readouterr().out
    assert f"- ctranslate2: {peer['setting']}; {peer['equal']} of {peer['compared']} tr" in table
    assert "inter_threads 1, intra_threads 1" in table


def test_a_peer_that_is_not_installed_is_left_out_with_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systems, "find_spec", lambda name: None)
    assert called("bench", "speed", "--systems", "ctranslate2", "--device", "cpu") == 2
    left_out, error = capsys.readouterr().err.strip().split("\n")
    assert left_out.startswith("ctranslate2: left out, ctranslate2 is not installed (pip install")
    assert error == "error: none of these systems can be measured here"


def test_groups_each_have_stock_and_decoding_has_none() -> None:
    names = ["none", STOCK, "t5", "shaw"]
    assert _groups(names, "train", 2) == [[STOCK, "none", "t5"], [STOCK, "shaw"]]
    assert _groups(names, "train", 0) == [names]
    assert _groups(names, "decode", 2) == [names]
    assert _groups(["none", "t5", "shaw"], "train", 2) == [["none", "t5", "shaw"]]


def test_what_is_wrong_in_a_process_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--systems none --measures train --device cpu --train-tokens 1000000"
    assert called("bench", "speed", *words.split()) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "none: its process ended with 1 (ValueError: train: only 1 batches" in error


def test_no_gpu_is_said_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert called("bench", "speed", "--device", "cuda") == 2
    assert capsys.readouterr().err == "error: --device cuda: torch finds no GPU\n"
