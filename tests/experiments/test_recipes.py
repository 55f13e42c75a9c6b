"""The recipes of config/: merged, complete, with commands that exist; and the paper's tables."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from diet_mt.cli.sweep import check_commands, planned
from diet_mt.evaluation.records import positions_of
from diet_mt.experiments import recipes
from diet_mt.experiments.sweep import MISSING, Command, Sweep, sweep_of
from diet_mt.positions import OPTIONS, build_position
from diet_mt.report.published import GLUE, XTREME, published_rows
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
        ("extends: multi31k", "multi31k; did you mean multi30k?"),
    ],
)
def test_a_wrong_recipe_is_one_line(tmp_path: Path, text: str, datum: str) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        recipes.load(str(own))
    assert datum in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_file_for_hydra_is_the_recipe() -> None:
    """fairseq-hydra-train reads a file of its own, whose numbers are those of the recipe."""
    file = ROOT / "config" / "hydra" / "diet_rel_tiny.yaml"
    options = {}
    for section, values in yaml.safe_load(file.read_text(encoding="utf-8")).items():
        for name, value in values.items() if section != "hydra" else ():
            option = section.replace("_", "-") if name == "_name" else name.replace("_", "-")
            options[option] = value[0] if isinstance(value, list) else value
    expected = dict(recipes.load("multi30k").training) | {"required-batch-size-multiple": 1}
    del expected["precision"]
    assert expected.items() <= options.items()


def given(words: Command) -> dict[str, str]:
    return {a: b for a, b in pairwise(words) if a.startswith("--")}


# Table -> its rows in the data, the recipe of the pretraining, tuned epochs, tasks that get
# segments in fine-tuning, and those that do not.
PLAIN = "QQP", "QNLI", "SST-2", "STS-B"
OF_GLUE = GLUE, "mlm", ("5", "10"), ("MNLI", "CoLA"), PLAIN
OF_XTREME = XTREME, "mlm-multilingual", ("3",), ("XNLI", "SQuAD"), ()
TABLES = {2: OF_GLUE, 3: OF_XTREME, 5: OF_XTREME, 8: OF_GLUE, 9: OF_GLUE}


def models(sweep: Sweep, recipe: str) -> dict[str, tuple[str, Mapping[str, object]]]:
    """Checkpoint of a pretraining -> its encoding, and that with its options, as a row has them."""
    out: dict[str, tuple[str, Mapping[str, object]]] = {}
    for words in [words for words in sweep.prepare if words[1] == "pretrain"]:
        own = {**recipes.load(recipe).values_of(words[3])}
        own |= {name[2:]: value for name, value in given(words).items()}
        assert own["recipe"] == recipe
        system = words[3].replace("_", "-")
        options = {
            name: option.kind is bool or option.kind(own[option.flag[2:]])
            for name, option in OPTIONS.items()
            if option.flag[2:] in own
        }
        text = build_position(system, **options).describe()
        out[f"{own['save-dir']}/checkpoint_best.pt"] = system, positions_of(text)
    return out


@pytest.mark.parametrize("number", TABLES)
def test_every_cell_of_the_paper_has_its_runs_and_every_run_its_cell(number: int) -> None:
    table, recipe, epochs, supplemented, plain = TABLES[number]
    sweep = swept(f"table{number}")
    pretrained = models(sweep, recipe)
    cells, used = set(), set()
    for row in [row for row in published_rows(table) if number in row.tables]:
        (model,) = (path for path, model in pretrained.items() if row.is_of(*model))
        used.add(model)
        cells |= {(model, row.segments, task) for task in supplemented}
        cells |= {(model, "none", task) for task in plain}
    assert used == pretrained.keys(), "no pretraining in vain"
    runs: Counter[tuple[str, str, str]] = Counter()
    settings = set()
    for run in sweep.runs:
        tuning, test, _ = run.commands
        options = given(tuning)
        task = tuning[2].rpartition("/")[2]
        cell = tuning[3], options["--segments"], task
        runs[cell] += 1
        settings.add((cell, options["--lr"], options["--max-epoch"], options["--seed"]))
        assert test[1] == ("answer" if task == "SQuAD" else "predict")
        assert test[2:4] == (tuning[2], f"{options['--save-dir']}/checkpoint_best.pt")
    assert len(settings) == len(sweep.runs)
    assert {setting[1:] for setting in settings} == {
        (lr, each, seed)
        for lr in ("1e-5", "2e-5", "3e-5", "4e-5")
        for each in epochs
        for seed in "12345"
    }
    assert runs == dict.fromkeys(cells, 4 * len(epochs) * 5)


@pytest.mark.parametrize("number", TABLES)
def test_hyper_parameters_are_planned_before_there_are_data(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sweep = swept(f"table{number}")
    pretraining = next(words for words in sweep.prepare if words[1] == "pretrain")
    (line,) = planned(pretraining)
    updates, warmup = ("500000", "12500") if number in (2, 8, 9) else ("125000", "3125")
    expected = {"lr": "0.0018", "sample-break-mode": "complete", "warmup-updates": warmup}
    expected |= {"total-num-update": updates, "max-update": updates}
    options = given(tuple(shlex.split(line)))
    assert expected.items() <= {name[2:]: value for name, value in options.items()}.items()
    for run in (sweep.runs[0], sweep.runs[-1]):
        line, pending = planned(run.commands[0])
        options = given(tuple(shlex.split(line)))
        assert options["--lr"] == given(run.commands[0])["--lr"]
        assert (options["--batch-size"], options["--adam-betas"]) == ("32", "(0.9, 0.999)")
        assert "--arch" in pending
        of_questions = run.commands[0][2].endswith("SQuAD")
        assert ("--warmup-updates" in options) != of_questions == ("--warmup-updates" in pending)
