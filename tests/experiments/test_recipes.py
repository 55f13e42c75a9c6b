"""The recipes of config/: merged, complete, with commands that exist; and the paper's tables."""

from __future__ import annotations

import shlex
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from diet_mt.cli.sweep import check_commands, planned
from diet_mt.experiments import recipes
from diet_mt.experiments.sweep import MISSING, Command, Sweep, sweep_of
from diet_mt.system.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
# Values that only the user can know.
OWN = {"train": "text", "valid": "text", "from": "a folder", "source": "de", "target": "fr"}
OWN |= {"mnli": "glue", "squad": "squad", "xquad": "xquad", "mlqa": "mlqa", "tydiqa": "tydiqa"}


@cache
def swept(name: str) -> Sweep:
    content = recipes.read(name)
    needed = [key for key, value in content["settings"].items() if value == MISSING]
    changes = {key: OWN.get(key, ["xquad_de"]) for key in needed if f"{{{key}}}" in str(content)}
    return sweep_of(content, name, changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", recipes.names())
def test_every_recipe_trains_and_its_commands_exist(name: str) -> None:
    assert recipes.read(name)["about"].endswith(".")
    values = recipes.load(name).training
    assert values["optimizer"] == "adam"
    assert sum(values.get(end) is not None for end in ("max-epoch", "max-update")) == 1
    sweep = swept(name)
    some = [*sweep.prepare, *sweep.runs[0].commands, *sweep.runs[-1].commands, *sweep.report]
    check_commands([words for words in some if words[0] == "diet-mt"])
    for run in sweep.runs:
        assert str(run.folder) in run.commands[0], "the folder of its checkpoints"


def test_a_recipe_extends_another(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(
        "extends: table4\ntraining: {lr: 0.1, eval-bleu: null}\n"
        "options: {t5: {position-buckets: 8}}\nruns: [{seed: 1}]\n",
        encoding="utf-8",
    )
    recipe, base = recipes.load(str(own)), recipes.load("table4")
    assert recipe.training == {**base.training, "lr": 0.1, "eval-bleu": None}
    assert recipe.values_of("shaw")["position-clip"] == 20
    assert recipe.values_of("t5")["position-buckets"] == 8
    assert "position-clip" not in recipe.values_of("t5")
    assert recipes.read(str(own))["runs"] == [{"seed": 1}]  # replaced, not added to
    assert "extends" not in recipes.read(str(own))


@pytest.mark.parametrize(
    ("text", "datum"),
    [
        ("traning: {lr: 1}", "traning; did you mean training?"),
        ("about: nothing", "no section training"),
        ("- lr", "own.yaml"),
        ("training: {lr: 1}\n\tlr: 2", "line 2"),
        ("extends: OWN", "own.yaml: extends itself"),
        ("extends: multi31k", "multi31k; did you mean multi30k?"),
    ],
)
def test_a_wrong_recipe_is_one_line(tmp_path: Path, text: str, datum: str) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(text.replace("OWN", str(own)), encoding="utf-8")
    with pytest.raises(UserError) as caught:
        recipes.load(str(own))
    assert datum in str(caught.value)
    assert "\n" not in str(caught.value)


def given(words: Command) -> dict[str, str]:
    return {a: b for a, b in pairwise(words) if a.startswith("--")}


@pytest.mark.parametrize(
    ("table", "updates", "warmup"), [(2, "500000", "12500"), (3, "125000", "3125")]
)
def test_hyper_parameters_are_planned_before_there_are_data(
    table: int, updates: str, warmup: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sweep = swept(f"table{table}")
    (line,) = planned(next(words for words in sweep.prepare if words[1] == "pretrain"))
    expected = {"--lr": "0.0018", "--sample-break-mode": "complete", "--warmup-updates": warmup}
    expected |= {"--total-num-update": updates, "--max-update": updates}
    assert expected.items() <= given(tuple(shlex.split(line))).items()
    for run in (sweep.runs[0], sweep.runs[-1]):
        line, pending = planned(run.commands[0])
        options = given(tuple(shlex.split(line)))
        assert options["--lr"] == given(run.commands[0])["--lr"]
        assert (options["--batch-size"], options["--adam-betas"]) == ("32", "(0.9, 0.999)")
        assert "--arch" in pending
        of_questions = run.commands[0][2].endswith("SQuAD")
        assert ("--warmup-updates" in options) != of_questions == ("--warmup-updates" in pending)
