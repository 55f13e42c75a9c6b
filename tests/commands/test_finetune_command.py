"""diet-mt finetune by fairseq-train: from a toy of a pretrained encoder to a model of a task."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diet_mt.cli.main import main
from diet_mt.files import sha256

from .encoder_place import SIZES, EncoderPlace

GIVEN = """
    --recipe glue --lr 0.003 --max-epoch 2 --batch-size 16 --save-dir run
""".split()  # noqa: SIM905


def test_a_task_is_learnt_once(
    place: EncoderPlace,
    forked: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    data, pretrained = str(place.task("CoLA")), str(place.pretrained)
    assert main(["finetune", data, pretrained, *GIVEN]) == 0
    names = {path.name for path in Path("run").iterdir()}
    assert {"checkpoint_best.pt", "checkpoint_last.pt", "command", "done"} <= names
    record = json.loads(Path("run", "pretrained.json").read_text())
    assert record["pretrained_sha256"] == sha256(place.pretrained)
    log = Path("run", "train.log").read_text(encoding="utf-8")
    updates = 2 * SIZES["train"] // 16
    assert f"num_updates {updates} " in log
    assert "--segment-encoding per-head starts at zero" in log
    before = {path: path.stat().st_mtime_ns for path in Path("run").iterdir()}
    assert main(["finetune", data, pretrained, *GIVEN]) == 0
    assert "run is finished" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in Path("run").iterdir()} == before
    assert main(["finetune", data, pretrained, *GIVEN, "--segments", "none"]) == 2
    assert "(--segment-encoding: 'per-head' there, 'none' here)" in capsys.readouterr().err
