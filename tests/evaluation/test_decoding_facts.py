"""What is decided and noted before a test set is decoded."""

from __future__ import annotations

import dataclasses
import datetime
import json
from pathlib import Path

import pytest
import torch

from diet_mt.errors import UserError
from diet_mt.evaluation import decoding_facts as plan
from diet_mt.evaluation.decoding_facts import facts_of, read_facts, subset_of
from diet_mt.evaluation.generation_options import mark_of


def planned(
    place: Path, capsys: pytest.CaptureFixture[str], run: str, *options: str, subset: str = ""
) -> list[str]:
    """The lines for a checkpoint of ``place``."""
    data, checkpoint = place / "data" / "toy.en-de" / "bin", place / run / "checkpoint_best.pt"
    assert plan.main(["--subset", subset, str(data), str(checkpoint), *options]) == 0
    return capsys.readouterr().out.split("\n")


def test_the_direction_chooses_the_test_set(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SacreBLEU's set of the reverse direction lies beside the other as test1."""
    assert planned(place, capsys, "run")[:3] == ["test", "", ""]
    assert planned(place, capsys, "back")[:3] == ["test1", "-s de -t en", ""]
    assert planned(place, capsys, "back", subset="test")[:2] == ["test", "-s de -t en"]


def test_where_there_is_one_test_set_it_serves_both_directions(tmp_path: Path) -> None:
    (tmp_path / "test.cs-en.cs.idx").touch()
    assert subset_of(tmp_path, ("en", "cs")) == subset_of(tmp_path, ("cs", "en")) == "test"


def test_options_are_marked_and_noted(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, mark, facts, rest = planned(place, capsys, "run", "--max-len-b", "5", "--cpu")
    assert mark == f".options-{mark_of('--max-len-b 5 --cpu')}"
    assert json.loads(facts) == {
        **dataclasses.asdict(facts_of(["--cpu"])),
        "options": "--max-len-b 5 --cpu",
        "device": "cpu",
        "threads": torch.get_num_threads(),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
    }
    assert rest == ""


def test_options_of_the_script_end_it(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan.main([str(place), str(place / "gone.pt"), "--beam", "1"]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.startswith("error: --beam: set BEAM;")) == ("", True)


def test_facts_are_read_as_they_were_written(tmp_path: Path) -> None:
    facts, file = facts_of(["--nbest", "2"]), tmp_path / "facts"
    file.write_text(json.dumps(dataclasses.asdict(facts)), encoding="utf-8")
    assert read_facts(file) == facts
    for content in ("{", "[1]", '{"date": ""}'):
        file.write_text(content, encoding="utf-8")
        with pytest.raises(UserError, match="facts: does not say where this was decoded"):
            read_facts(file)
