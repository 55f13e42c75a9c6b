"""What scripts/train.sh runs and keeps, with a stand-in for fairseq-train."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.evaluation.checkpoint import portable
from diet_mt.evaluation.records import read_results

from .runner import ROOT
from .scripts import TRAIN, run

BIN = "data/multi30k.en-de/bin"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with what passes for data and for fairseq-train, which writes down its words."""
    (tmp_path / BIN).mkdir(parents=True)
    (tmp_path / BIN / "preprocess.log").touch()
    program = tmp_path / "fairseq-train"
    program.write_text('#!/bin/sh\necho trained >>calls\necho "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return tmp_path


def test_the_default_recipe_is_that_of_the_rows_kept(place: Path) -> None:
    for row in read_results(ROOT / "results" / "multi30k.en-de.jsonl"):
        save = row.train_command.split("--save-dir ")[1].split()[0]
        said = run(TRAIN, BIN, row.arch, row.seed, save, cwd=place, DRY_RUN=1)
        assert portable(said) == row.train_command
    assert not (place / "calls").exists()
    assert not (place / "checkpoints").exists()


def test_where_it_runs_is_not_part_of_what_it_is(place: Path) -> None:
    given = (TRAIN, BIN, "none_tiny", 1, "save", "--dropout", "0.2")
    first = run(*given, cwd=place, folder=place, LAUNCH="--cpu --distributed-rank 0", PROCESSES=2)
    kept = (place / "save" / "command").read_text(encoding="utf-8")
    assert "--dropout 0.2 --cpu --distributed-rank 0" in first
    assert kept.rstrip().endswith("--distributed-world-size 2 --dropout 0.2")
    again = run(*given, cwd=place, folder=place, LAUNCH="--distributed-rank 8", PROCESSES=2)
    assert "save is finished" in again
    assert (place / "calls").read_text(encoding="utf-8") == "trained\n"
    refused = run(*given, cwd=place, folder=place, PROCESSES=4, status=2)
    assert "save was begun with another command" in refused


def test_where_nothing_was_trained_another_command_may_begin(place: Path) -> None:
    """Options that fairseq-train refuses do not lock the folder."""
    given = (TRAIN, BIN, "none_tiny", 1, "save")
    (place / "fairseq-train").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    run(*given, "--lr", "abc", cwd=place, folder=place, status=1)
    begun = "#!/bin/sh\ntouch save/checkpoint_last.pt\nexit 1\n"
    (place / "fairseq-train").write_text(begun, encoding="utf-8")
    run(*given, "--lr", "0.1", cwd=place, folder=place, status=1)
    assert "--lr 0.1" in (place / "save" / "command").read_text(encoding="utf-8")
    refused = run(*given, "--lr", "0.2", cwd=place, folder=place, status=2)
    assert "save was begun with another command" in refused


def test_a_training_whose_time_is_up_is_not_finished(place: Path) -> None:
    text = "Stopping training due to cumulative_training_time: 2.1 > stop_time_hours: 2 hour(s)"
    (place / "fairseq-train").write_text(f"#!/bin/sh\necho '{text}'\n", encoding="utf-8")
    given = (TRAIN, BIN, "none_tiny", 1, "save")
    said = run(*given, cwd=place, folder=place, status=2, LAUNCH="--stop-time-hours 2")
    assert "save: stopped by --stop-time-hours before its end" in said
    assert not (place / "save" / "done").exists()
    (place / "fairseq-train").write_text("#!/bin/sh\necho more\n", encoding="utf-8")
    run(*given, cwd=place, folder=place, LAUNCH="--stop-time-hours 4")
    assert (place / "save" / "done").exists()


def test_only_the_first_machine_keeps_the_books(place: Path) -> None:
    run(TRAIN, BIN, "none_tiny", 1, "save", cwd=place, folder=place, NODE_RANK=1)
    assert [path.name for path in (place / "save").iterdir()] == ["train.1.log"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"MAX_UPDATE": 7}, "--max-tokens 4096 --max-update 7 "),
        ({"PRECISION": "bf16"}, " --bf16"),
        ({"UPDATE_FREQ": 3, "CLIP_NORM": 0}, "--update-freq 3 --clip-norm 0"),
        ({"SOURCE_LANG": "de", "TARGET_LANG": "en"}, "--source-lang de --target-lang en"),
        (
            {"SAVE_EVERY": 50, "KEEP": 4},
            "--save-interval-updates 50 --validate-interval-updates 50 --keep-interval-updates 4",
        ),
    ],
)
def test_settings_become_options(place: Path, settings: dict[str, object], words: str) -> None:
    said = run(TRAIN, BIN, "none_tiny", 1, "save", cwd=place, DRY_RUN=1, **settings)
    assert words in said


def test_an_unknown_precision_is_refused(place: Path) -> None:
    said = run(TRAIN, BIN, "none_tiny", 1, "save", cwd=place, status=2, PRECISION="fp8")
    assert said == "error: PRECISION 'fp8': choose fp32, fp16 or bf16\n"
