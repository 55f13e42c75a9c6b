"""What a sweep's file says, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.experiments.sweep import shown, sweep_of
from diet_mt.system.errors import UserError

from .stubs import SWEEP, here, sweep

__all__ = ["here"]
Captured = pytest.CaptureFixture[str]
CONTENT = {"runs": [{"seed": [1, 2]}], "folder": "runs/{seed}", "run": ["train {seed} {folder}"]}


def commands(**more: object) -> list[str]:
    return [shown(words) for words in sweep_of({**CONTENT, **more}, "mine").commands]


def test_values_are_filled_into_words() -> None:
    settings = {"none": None, "some": ["a b", "c"], "where": "{base}/x", "base": "runs"}
    assert commands(settings={"twice": ["-a", 1, "-b", 1]}, run=["t {twice}"])[0] == "t -a 1 -b 1"
    run = ["train '{where}' --no={none} {none} {some} x{seed}.{some} {{seed}} {recipe}"]
    assert commands(settings=settings, run=run)[0] == (
        "train runs/x 'a b' c 'x1.a b' x1.c '{seed}' mine"
    )
    # A list within a list is one value.
    assert commands(runs=[{"seed": 1, "dev": [["a", "b"]]}], run=["t {dev}"]) == ["t a b"]


def test_equal_preparations_are_done_once_and_a_report_is_about_all_runs() -> None:
    runs = [{"pair": ["de", "cs"], "seed": [1, 2]}]
    prepare, report = ["get {pair}", "bin {pair}"], ["table data.{pair} {seed} --all"]
    folder = "{pair}.{seed}"
    assert commands(runs=runs, prepare=prepare, report=report, folder=folder, run=["x"]) == [
        *("get de", "get cs", "bin de", "bin cs", "x", "x", "x", "x"),
        "table data.de data.cs 1 2 --all",
    ]


def test_one_training_decoded_in_several_ways_is_one_run() -> None:
    runs = [{"seed": [1, 2], "way": "plain"}, {"seed": 1, "way": "scaled"}]
    work = ["train {seed} {folder}", "decode {folder} {way}"]
    made = sweep_of({**CONTENT, "runs": runs, "run": work, "folder": "m.{seed}"}, "mine").runs
    assert {run.name: [shown(words) for words in run.commands] for run in made} == {
        "m.1": ["train 1 m.1", "decode m.1 plain", "decode m.1 scaled"],
        "m.2": ["train 2 m.2", "decode m.2 plain"],
    }
    # What they all begin with once, and of the rest nothing is left out.
    work = ["train", "average {last}", "evaluate", "rm"]
    assert commands(runs=[{"last": [5, 9]}], run=work, folder="m") == [
        *("train", "average 5", "evaluate", "rm", "average 9", "evaluate", "rm")
    ]


@pytest.mark.parametrize(
    ("more", "datum"),
    [
        ({"run": []}, "mine: no section run"),
        ({"run": "train"}, "mine, run:"),
        ({"runs": {"seed": 1}}, "mine, runs:"),
        ({"settings": {"a": True}}, "mine, a: True"),
        ({"settings": {"a": {"b": 1}}}, "mine, a: {'b': 1}"),
        ({"run": ["train {sed}"]}, "mine, run: unknown variable sed; did you mean seed?"),
        ({"runs": [{"model": "a", "seed": []}]}, "mine, runs:"),
        ({"run": ["train {a}"], "settings": {"a": "{b}", "b": "{a}"}}, "mine, run, a, b:"),
        ({"run": ["train {a}"], "settings": {"a": "???"}}, "--set a="),
        ({"run": ["train }"]}, "mine, run: }:"),
        ({"run": ["train 'x"]}, "mine, run: train 'x:"),
        ({"run": [""]}, "mine, run: an empty command"),
        ({"folder": "runs"}, "mine, folder: runs"),
        ({"folder": "runs", "run": ["x"]}, "mine, folder: runs"),
        ({"folder": "{a}", "runs": [{"a": ["x", "./y/../x"]}], "run": ["t {a}"]}, "folder: x"),
        ({"folder": "{a}", "settings": {"a": ["x", "y"]}}, "mine, folder: {a}: 2 values"),
    ],
)
def test_a_wrong_file(more: dict[str, object], datum: str) -> None:
    with pytest.raises(UserError) as error:
        commands(**more)
    assert datum in str(error.value)


@pytest.mark.parametrize(
    ("words", "datum"),
    [
        ("--set wrk=1", "wrk; did you mean work?"),
        ("--set folder=x", "folder"),
        ("--set work=[1", "work: [1"),
        ("--set work=a --set work=b", "work"),
        ("--runs modle=shaw", "modle; did you mean model?"),
        ("--runs model=shav", "shav; did you mean shaw?"),
        ("--runs seed=7", "seed 7; choose from 1, 2"),
        ("--runs seed=1,seed=2", "seed=1,seed=2"),
        ("--runs seed", "--runs"),
        ("--set idle=1", "idle"),
    ],
)
def test_wrong_options(words: str, datum: str, here: Path, capfd: Captured) -> None:
    (here / "mine.yaml").write_text(SWEEP.replace('work: "true"', 'work: "true", idle: 1'))
    assert sweep("mine.yaml", *words.split()) == 2
    assert datum in capfd.readouterr().err
    assert sorted(path.name for path in here.iterdir()) == ["mine.yaml", "stub.sh"]


def test_set_replaces_values_of_runs(here: Path, capfd: Captured) -> None:
    words = ("--set", "model=learned", "--set", "seed=[7, 8]", "--runs", "seed=8", "--dry-run")
    assert sweep("mine.yaml", *words) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("# run")] == ["# run learned.8"]


@pytest.mark.parametrize("given", ["v", ["a", "b"]])
def test_set_replaces_the_default_of_a_variable_of_some_runs(given: str | list[str]) -> None:
    runs = [{"seed": 1}, {"seed": 2, "beyond": "refuse"}]
    content = {"folder": "{seed}.{beyond}", "runs": runs, "run": ["x {beyond}"]}
    made = sweep_of({**content, "settings": {"beyond": "clip"}}, "mine", {"beyond": given})
    assert [shown(words) for words in made.commands] == [f"x {each}" for each in given] * 2


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ({"name": "a"}, ["a.1"]),  # of the settings, if not of the run
        ({"name": "None"}, ["None.2"]),  # text, not nothing
        ({"out": "runs/b.1/x"}, ["b.1"]),
        ({"out": "y"}, ["a.1", "None.2"]),
        ({"words": "['--p', '3']"}, ["b.1"]),
        ({"model": "c,d"}, ["None.2"]),
    ],
)
def test_runs_are_chosen_by_filled_values(choice: dict[str, str], names: list[str]) -> None:
    content = {
        **CONTENT,
        "settings": {"name": "{model}", "out": "y", "places": 3},
        "runs": [
            {"model": "a", "seed": 1},
            {"model": "b", "seed": 1, "out": "{folder}/x", "words": [["--p", "{places}"]]},
            {"model": "c,d", "seed": 2, "name": "None"},
        ],
        "folder": "runs/{name}.{seed}",
        "run": ["train {model}"],
    }
    assert [run.name for run in sweep_of(content, "mine", choices=[choice]).runs] == names
