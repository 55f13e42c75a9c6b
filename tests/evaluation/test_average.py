"""The mean of checkpoints: by hand, whatever their weights share, and only of one model."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from diet_mt.errors import UserError
from diet_mt.evaluation.average import last_checkpoints

from ..calling import called

OPTIONS = {"_name": "diet_rel_tiny", "encoder_layers": 2, "dropout": 0.1}


def state(value: float, updates: int = 1, **options: Any) -> dict[str, Any]:
    """A checkpoint of a model with one number for its weights."""
    shared = torch.full((3, 2), value)
    return {
        "args": None,
        "cfg": {"model": OPTIONS | options, "task": {"source_lang": "en", "target_lang": "de"}},
        "model": {
            "encoder.embed": shared,
            "decoder.embed": shared,
            "half": torch.full((2,), value, dtype=torch.bfloat16),
            "signature": torch.tensor([7, updates]),
        },
        "optimizer_history": [{"num_updates": updates}],
        "extra_state": {"train_iterator": {"epoch": 2}},
        "last_optimizer_state": {"state": {0: torch.zeros(100)}},
    }


def write(folder: Path, states: dict[str, Any]) -> list[str]:
    for name, one in states.items():
        torch.save(one, folder / name)
    return [str(folder / name) for name in states]


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = torch.load(path, weights_only=True)
    return found


def test_the_mean_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # In bfloat16, 257 is 256: its last digit is worth 2 there.
    states = {"a.pt": state(1.0, 10), "b.pt": state(2.0, 20), "c.pt": state(768.0, 30)}
    paths = write(tmp_path, states)
    assert called("average", *paths, "--out", str(tmp_path / "mean.pt")) == 0
    assert capsys.readouterr().out == f"{tmp_path}/mean.pt\tthe mean of a.pt, b.pt, c.pt\n"
    found = read(tmp_path / "mean.pt")
    model = found["model"]
    assert model["encoder.embed"].tolist() == [[257.0, 257.0]] * 3
    assert model["half"].tolist() == [257.0, 257.0]
    assert model["half"].dtype == torch.float32
    assert model["signature"].tolist() == [7, 30]
    # What was shared still is: one tensor in the file, and one in memory.
    assert model["decoder.embed"].data_ptr() == model["encoder.embed"].data_ptr()
    assert "last_optimizer_state" not in found
    assert found["averaged"] == [
        {"file": "a.pt", "updates": 10},
        {"file": "b.pt", "updates": 20},
        {"file": "c.pt", "updates": 30},
    ]
    assert (found["extra_state"], found["cfg"]) == (state(0)["extra_state"], state(0)["cfg"])


def test_one_of_each_is_itself(tmp_path: Path) -> None:
    (path,) = write(tmp_path, {"a.pt": state(0.1)})
    assert called("average", path, path, "--out", str(tmp_path / "mean.pt")) == 0
    found = read(tmp_path / "mean.pt")["model"]["encoder.embed"]
    assert torch.equal(found, torch.full((3, 2), 0.1))


def test_the_last_are_those_of_the_highest_numbers(tmp_path: Path) -> None:
    names = [f"checkpoint_{number}.pt" for number in ("1_9", "1_10", "2_11", "10_100")]
    for name in (*names, "checkpoint3.pt", "checkpoint_best.pt", "checkpoint_1_9.pt.part"):
        (tmp_path / name).touch()
    assert [path.name for path in last_checkpoints(tmp_path, 3)] == names[1:]
    with pytest.raises(UserError, match="4 numbered checkpoints, 5 to be averaged"):
        last_checkpoints(tmp_path, 5)


def test_epochs_serve_where_there_are_no_intervals(tmp_path: Path) -> None:
    for name in ("checkpoint2.pt", "checkpoint10.pt", "checkpoint9.pt", "checkpoint_last.pt"):
        (tmp_path / name).touch()
    found = last_checkpoints(tmp_path, 2)
    assert [path.name for path in found] == ["checkpoint9.pt", "checkpoint10.pt"]


def other(**changes: Any) -> dict[str, Any]:
    """A checkpoint whose model has these tensors too; None: not that one."""
    found = copy.deepcopy(state(1.0))
    for name, value in changes.items():
        if value is None:
            del found["model"][name]
        else:
            found["model"][name] = value
    return found


@pytest.mark.parametrize(
    ("second", "complaint"),
    [
        (state(1.0, _name="none_tiny"), "option _name: 'diet_rel_tiny' there, 'none_tiny' here"),
        (state(1.0, dropout=0.3), "option dropout: '0.1' there, '0.3' here"),
        (
            other(half=torch.zeros(3)),
            "tensor half: '(2,) of torch.bfloat16, memory of half' there, '(3,)",
        ),
        (
            other(half=None),
            "tensor half: '(2,) of torch.bfloat16, memory of half' there, not given here",
        ),
        (other(more=torch.zeros(1)), "tensor more: not given there, '(1,)"),
        ({"weights": torch.zeros(1)}, "not a checkpoint of fairseq-train"),
        ({"model": Path("x")}, "could run code"),
    ],
)
def test_another_model_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], second: Any, complaint: str
) -> None:
    paths = write(tmp_path, {"a.pt": state(1.0)})
    torch.save(second, tmp_path / "b.pt")
    assert called("average", *paths, f"{tmp_path}/b.pt", "--out", f"{tmp_path}/mean.pt") == 2
    message = capsys.readouterr().err
    assert message.startswith(f"error: {tmp_path}/b.pt")
    assert complaint in message
    assert message.count("\n") == 1
    assert not list(tmp_path.glob("mean*"))


def test_a_file_cut_short_or_missing_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = write(tmp_path, {"a.pt": state(1.0)})
    (tmp_path / "cut.pt").write_bytes(Path(path).read_bytes()[:700])
    (tmp_path / "text.pt").write_text("no tensors here")
    complaints = {
        "cut.pt": "cut short",
        "gone.pt": "no such checkpoint",
        "text.pt": "cut short or not a checkpoint",
    }
    for name, complaint in complaints.items():
        assert called("average", path, f"{tmp_path}/{name}", "--out", f"{tmp_path}/mean.pt") == 2
        message = capsys.readouterr().err
        assert f"{name}: {complaint}" in message
        assert message.count("\n") == 1
    assert not (tmp_path / "mean.pt").exists()


def test_no_place_to_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = write(tmp_path, {"a.pt": state(1.0)})
    assert called("average", path, "--out", f"{path}/mean.pt") == 2
    assert f"error: {path}/mean.pt: cannot be written" in capsys.readouterr().err


def test_masked_language_models_have_no_languages(tmp_path: Path) -> None:
    one = state(1.0)
    one["cfg"]["task"] = {"data": "x"}
    paths = write(tmp_path, {"a.pt": one, "b.pt": one})
    assert called("average", *paths, "--out", tmp_path / "mean.pt", "--dry-run") == 0
    assert not (tmp_path / "mean.pt").exists()
    assert called("average", *paths, "--out", tmp_path / "mean.pt") == 0


@pytest.mark.parametrize("arguments", [[], ["--last", "2"], ["a.pt", "--last", "2", "--dir", "."]])
def test_either_checkpoints_or_a_folder(arguments: list[str]) -> None:
    assert called("average", *arguments, "--out", "x.pt") == 2
