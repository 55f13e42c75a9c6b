"""diet-mt pretrain with tiny numbers: the same lines of code as with the paper's."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.cli.main import main
from diet_mt.evaluation.curves import read_training

from .encoders import Encoders

# 300 sentences, packed: a few updates make an epoch.
TINY = """
    --recipe mlm --size tiny --gpus 0 --save-dir saved --tokens-per-sample 48 --max-update 24
    --max-source-positions 64 --sequences-per-update 32 --max-tokens-per-device 768 --lr 0.003
    --save-interval-updates 8 --validate-interval-updates 8 --log-interval 8
""".split()  # noqa: SIM905


@pytest.fixture
def place(
    encoders: Encoders, forked: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "bin").symlink_to(encoders.vocabulary)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_loss_falls_and_a_finished_training_is_left_alone(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    system = "diet-abs-lin"
    assert main(["pretrain", "data", system, *TINY]) == 0
    said = capsys.readouterr().err
    assert "batches of 16 sequences, 2 for an update: 32 sequences" in said
    assert (place / "saved" / "checkpoint_best.pt").stat().st_size > 1000
    curve = read_training(place / "saved")
    assert [point[0] for point in curve.points] == [8, 16, 24]
    bits = [point[1] for point in curve.points]
    assert bits[0] > bits[1] > bits[2]
    assert (curve.system, curve.seed, curve.segments) == ("diet_abs_lin", 1, "none")
    assert curve.settings["tokens-per-sample"] == "48"
    before = {path: path.stat().st_mtime_ns for path in (place / "saved").iterdir()}
    assert main(["pretrain", "data", system, *TINY]) == 0
    assert "is finished" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in (place / "saved").iterdir()} == before


def test_validation_is_masked_alike_throughout_a_training(place: Path) -> None:
    """With a rate of 0 nothing but the masks could change the loss, epoch after epoch."""
    assert main(["pretrain", "data", "none", *TINY, "--lr", "0"]) == 0
    assert '"epoch": 3' in (place / "saved" / "train.log").read_text(encoding="utf-8")
    bits = {point[1] for point in read_training(place / "saved").points}
    assert len(bits) == 1


def test_validation_is_masked_alike_for_every_system(encoders: Encoders) -> None:
    """The masks know nothing of the model: they come from the task's options alone."""
    from fairseq.tasks.masked_lm import MaskedLMConfig, MaskedLMTask

    def batches(seed: int) -> list[list[int]]:
        cfg = MaskedLMConfig(
            data=str(encoders.vocabulary),
            tokens_per_sample=48,
            sample_break_mode="complete_doc",
            seed=seed,
        )
        task = MaskedLMTask.setup_task(cfg)
        task.load_dataset("valid")
        data = task.dataset("valid")
        data.set_epoch(1)
        return [data[number]["net_input.src_tokens"].tolist() for number in range(len(data))]

    assert batches(1) == batches(1)
    assert batches(1) != batches(2)
