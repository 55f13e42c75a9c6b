"""What is wrong with a sweep is said in one line, before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.errors import UserError
from diet_mt.sweeps.sweep import sweep_of
from diet_mt.sweeps.variables import shown

from .stubs import SWEEP, here, sweep

__all__ = ["here"]
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


def test_a_list_within_a_list_is_one_value() -> None:
    found = sweep_of(
        {**CONTENT, "runs": [{"seed": 1, "dev": [["a", "b"]]}], "run": ["t {dev}"]}, "m"
    )
    assert [run.commands for run in found.runs] == [(("t", "a", "b"),)]


def test_what_prepares_the_same_is_done_once_and_a_report_is_about_all_runs() -> None:
    runs = [{"pair": ["de", "cs"], "seed": [1, 2]}]
    prepare, report = ["get {pair}", "bin {pair}"], ["table data.{pair} {seed} --all"]
    folder = "{pair}.{seed}"
    found = commands(runs=runs, prepare=prepare, report=report, folder=folder, run=["x"])
    assert found == [
        *("get de", "get cs", "bin de", "bin cs", "x", "x", "x", "x"),
        "table data.de data.cs 1 2 --all",
    ]


def test_one_training_decoded_in_several_ways_is_one_run() -> None:
    runs = [{"seed": [1, 2], "way": "plain"}, {"seed": 1, "way": "scaled"}]
    work = ["train {seed} {folder}", "decode {folder} {way}"]
    found = sweep_of({**CONTENT, "runs": runs, "run": work, "folder": "m.{seed}"}, "mine").runs
    assert {run.name: [shown(words) for words in run.commands] for run in found} == {
        "m.1": ["train 1 m.1", "decode m.1 plain", "decode m.1 scaled"],
        "m.2": ["train 2 m.2", "decode m.2 plain"],
    }
    # What they all begin with once, and of the rest nothing is left out.
    runs = [{"last": [5, 9]}]
    work = ["train", "average {last}", "evaluate", "rm"]
    (run,) = sweep_of({**CONTENT, "runs": runs, "run": work, "folder": "m"}, "mine").runs
    done = [shown(words) for words in run.commands]
    assert done == ["train", "average 5", "evaluate", "rm", "average 9", "evaluate", "rm"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"run": []}, "mine: no section run; not a sweep file"),
        ({"run": "train"}, "mine, run: should be a list of commands"),
        ({"runs": {"seed": 1}}, "mine, runs: should be a list of mappings"),
        ({"settings": ["a"]}, "mine, settings: should be names and their values"),
        ({"settings": {"a": True}}, "mine, a: True is no text, number or list of these; put it in"),
        ({"settings": {"a": {"b": 1}}}, "mine, a: {'b': 1} is no text"),
        ({"run": ["train {sed}"]}, "mine, run: unknown variable sed; did you mean seed?"),
        *(
            ({"run": [f"train {text}"]}, f"mine, run: {text}: give the name of a variable alone")
            for text in ("{}", "{seed!z}", "{seed:>q}", "{a.b}", "{0}")
        ),
        ({"runs": [{"model": "a", "seed": []}]}, "mine, runs: a variable has no values"),
        ({"folder": ["a", "b"]}, "mine, folder: should be one text"),
        ({"run": ["train {a}"], "settings": {"a": "{b}", "b": "{a}"}}, "mine, run, a, b: unknown"),
        (
            {"run": ["train {a}"], "settings": {"a": "???"}},
            "mine, run: needs a value for a; ",
        ),
        ({"run": ["train }"]}, "mine, run: }: Single '}' encountered"),
        ({"run": ["train 'x"]}, "mine, run: train 'x: No closing quotation"),
        ({"run": [""]}, "mine, run: an empty command"),
        ({"folder": "runs"}, "mine, folder: runs would be that of several runs; name all"),
        ({"folder": "runs", "run": ["x"]}, "mine, folder: runs would be that of several runs"),
        (
            {"folder": "{a}", "runs": [{"a": ["x", "./y/../x"]}], "run": ["train {a}"]},
            "mine, folder: x would be that of several runs",
        ),
        ({"folder": "{a}", "runs": [{"a": ["/x", "x"]}]}, "mine, folder: some are absolute, some"),
        ({"run": ["train a\0b"]}, "mine, run: 'a\\x00b': has a NUL"),
        ({"folder": "{a}", "settings": {"a": ["x", "y"]}}, "mine, folder: {a}: 2 values"),
        (
            {"runs": [{"system": ["diet_rell"]}]},
            "mine: unknown system diet_rell; did",
        ),
    ],
)
def test_a_wrong_file(more: dict[str, object], said: str) -> None:
    with pytest.raises(UserError) as error:
        commands(**more)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--set wrk=1", "--set: unknown variable wrk; did you mean work?"),
        ("--set work", "argument --set: work: give name=value; see diet-mt sweep --help"),
        ("--set work=[1", "--set work: [1: give a list as [a, b]"),
        ("--runs modle=shaw", "--runs: unknown variable modle; did you mean model?"),
        ("--runs model=shav", "--runs: unknown model shav; did you mean shaw?"),
        ("--runs seed=7", "--runs: unknown seed 7; choose from 1, 2"),
        ("--runs seed=1,seed=2", "argument --runs: seed=1,seed=2: seed: given twice; see diet-mt "
         "sweep --help"),
        ("--runs ''", "argument --runs: '': give name=value; see diet-mt sweep --help"),
        ("--runs seed", "argument --runs: seed: give name=value; see diet-mt sweep --help"),
        ("--jobs 0", "argument --jobs: 0: expected a whole number of at least 1; "
         "see diet-mt sweep --help"),
        ("--executor slum", "argument --executor: unknown value slum; did you mean slurm?"),
        ("--slurm time=long", "--slurm: time=long: should be a number"),
        ("--slurm time=9 --jobs 2", "--jobs is for this machine; Slurm decides how many jobs run "
         "at a time"),
    ],
)  # fmt: skip
def test_wrong_options(
    words: str, said: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert sweep("mine.yaml", *words.split()) == 2
    assert capfd.readouterr() == ("", f"error: {said}\n")
    assert sorted(path.name for path in here.iterdir()) == ["mine.yaml", "stub.sh"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("runs: [", "error: mine.yaml, line "),
        ("rusn: []", "error: mine.yaml: unknown section rusn; did you mean run"),
        ("just text", "error: mine.yaml: "),
        (SWEEP.replace("echo", "diet-mt bench sped"), "error: unknown command bench sped; did "),
    ],
)  # fmt: skip
def test_a_broken_file(text: str, said: str, here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "mine.yaml").write_text(text, encoding="utf-8")
    assert sweep("mine.yaml") == 2
    out, errors = capfd.readouterr()
    assert (out, errors[: len(said)], errors.count("\n")) == ("", said, 1)
    assert not (here / "runs").exists()


def test_set_replaces_values_of_runs(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ("--set", "model=learned", "--set", "seed=[7, 8]", "--runs", "seed=8", "--dry-run")
    assert sweep("mine.yaml", *words) == 0
    said = capfd.readouterr().out
    assert [line for line in said.splitlines() if line.startswith("# run")] == ["# run learned.8"]


def test_runs_are_chosen_by_values_as_they_are_filled() -> None:
    runs = [{"seed": [1, 2], "name": "{seed}.x,y"}]
    content = {**CONTENT, "runs": runs, "folder": "{name}"}
    (run,) = sweep_of(content, "mine", choices=[{"name": "2.x,y"}]).runs
    assert run.name == "2.x,y"


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ({"name": "a"}, ["a.1"]),  # of the settings, as runs do not say
        ({"name": "None"}, ["None.2"]),  # nothing is not this
        ({"out": "runs/b.1/x"}, ["b.1"]),
        ({"out": "y"}, ["a.1", "None.2"]),
        ({"words": "['--p', '3']"}, ["b.1"]),
    ],
)
def test_what_a_variable_of_a_run_is(choice: dict[str, str], names: list[str]) -> None:
    content = {
        **CONTENT,
        "settings": {"name": "{model}", "out": "y", "places": 3},
        "runs": [
            {"model": "a", "seed": 1},
            {"model": "b", "seed": 1, "out": "{folder}/x", "words": [["--p", "{places}"]]},
            {"model": "c", "seed": 2, "name": "None"},
        ],
        "folder": "runs/{name}.{seed}",
        "run": ["train {model}"],
        "prepare": [],
        "report": [],
    }
    assert [run.name for run in sweep_of(content, "mine", choices=[choice]).runs] == names


def test_a_variable_that_is_not_used_is_refused(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "mine.yaml").write_text(SWEEP.replace("work:", "idle:").replace(" {work}", ""))
    assert sweep("mine.yaml", "--set", "idle=1") == 2
    assert capfd.readouterr().err == "error: --set: mine.yaml makes no use of idle\n"
