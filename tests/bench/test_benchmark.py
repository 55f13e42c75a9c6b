"""A run of the benchmark and its table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from diet_mt.bench import systems
from diet_mt.bench.benchmark import _groups, _summary
from diet_mt.bench.systems import STOCK, SYSTEMS

from ..calling import called


def test_every_system_is_there() -> None:
    assert {STOCK, "none", "sinusoidal", "learned", "diet_rel", "diet_abs"} <= set(SYSTEMS)
    assert {"ctranslate2", "diet_rel:fairseq", "diet_abs:fairseq"} <= set(SYSTEMS)


def test_a_run_and_its_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    words = "--systems ctranslate2 stock diet_rel:fairseq --measures decode --rounds 3 --warmup 1"
    words += " --batches 1 --vocabulary 60 --decode-tokens 30 --decode-length 0 --threads 1"
    assert called("bench", "speed", *words.split(), "--device", "cpu") == 0
    output = capsys.readouterr()
    assert "tiny cpu decode: round 3 of 3" in output.err
    records = {r["system"]: r for r in map(json.loads, output.out.strip().split("\n"))}
    assert list(records) == ["ctranslate2", STOCK, "diet_rel:fairseq"]
    stock, ours, peer = records[STOCK], records["diet_rel:fairseq"], records["ctranslate2"]
    assert stock["threads"] == 1
    assert stock["median"] == pytest.approx(
        stock["sentences"] / sorted(stock["seconds"])[1], rel=1e-3
    )
    faster = (other / own for own, other in zip(ours["seconds"], stock["seconds"], strict=True))
    assert ours["ratio_median"] == pytest.approx(sorted(faster)[1], abs=1e-3)
    # Translations are compared where the model decides their length.
    assert (peer["equal_to"], peer["compared"]) == (STOCK, stock["sentences"])
    said = f"ctranslate2: {peer['equal']} of {peer['compared']} translations are those of stock"
    assert said in output.err
    assert "equal" not in ours
    assert not any("positions" in row for row in records.values())  # their speed is no encoding's

    file = tmp_path / "bench.jsonl"
    file.write_text(output.out, encoding="utf-8")
    assert called("bench", "table", file) == 0
    table = capsys.readouterr().out
    rows = [line for line in table.split("\n") if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in rows]
    assert cells[0] == ["system", "decode, sentences/s", "to stock"]
    assert [row[0] for row in cells[1:]] == ["ctranslate2", STOCK, "diet_rel (fairseq's search)"]
    assert f"- ctranslate2: {peer['setting']}; {peer['equal']} of {peer['compared']} tr" in table
    assert "inter_threads 1, intra_threads 1" in table
    assert f"fp32; sentences in a turn: decode {stock['sentences']}**" in table


def test_a_variant_is_timed_beside_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--systems t5 --measures decode --rounds 1 --warmup 1 --batches 1"
    words += " --vocabulary 60 --decode-tokens 30 --decode-length 3 --threads 1 --device cpu"
    variant = "t5.published=t5 --position-in encoder,decoder"
    assert called("bench", "speed", *words.split(), "--variant", variant) == 0
    found = list(map(json.loads, capsys.readouterr().out.strip().split("\n")))
    assert [row["system"] for row in found] == ["t5", "t5.published"]
    assert [row["decode_length"] for row in found] == [3, 3]
    usual = "t5 sharing=layer-wise buckets=32 max-distance=128"
    assert [row["positions"] for row in found] == [
        f"{usual} scale=head",
        f"{usual} in=encoder,decoder scale=head",
    ]


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        ("shaw=shaw --position-clip 2", "shaw: a system already; give the variant another name"),
        ("mine=stock", "mine: unknown encoding stock; choose from alibi, "),
        ("mine=", "mine: no encoding; give mine=ENCODING, and options after it"),
        ("mine=t5 'x", "mine: t5 'x: No closing quotation"),
    ],
)
def test_an_invalid_variant(variant: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert called("bench", "speed", "--variant", variant) == 2
    assert capsys.readouterr().err.startswith(f"error: {said}")


def test_an_option_is_given_once_for_each_name(capsys: pytest.CaptureFixture[str]) -> None:
    for option in "--variant", "--checkpoint":
        assert called("bench", "speed", option, "a=shaw", option, "a=t5") == 2
        assert capsys.readouterr().err == f"error: {option} a: given twice\n"
    assert called("bench", "speed", "--options", "'x") == 2
    assert capsys.readouterr().err == "error: --options: 'x: No closing quotation\n"


def test_a_step_is_a_time_and_its_ratio_is_to_stock_round_by_round() -> None:
    facts = {"batches": 2, "sentences": 5, "setting": "", "positions": ""}
    found = _summary("train", [0.2, 0.4, 0.8], [0.1, 0.4, 1.6], facts)
    assert (found["unit"], found["median"], found["ratio_median"]) == ("ms", 200.0, 1.0)
    assert (found["rounds"], found["batches"]) == (3, 2)
    assert "ratio_median" not in _summary("train", [0.2], None, facts)


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


def test_no_gpu_is_said_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert called("bench", "speed", "--device", "cuda") == 2
    assert capsys.readouterr().err == "error: --device cuda: torch finds no GPU\n"
