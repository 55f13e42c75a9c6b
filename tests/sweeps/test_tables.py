"""The sweeps of the paper's tables 2, 3, 5, 8 and 9: their runs and the cells of the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

import pytest

from diet_mt import recipes
from diet_mt.evaluation.records import positions_of
from diet_mt.positions import OPTIONS, build_position
from diet_mt.report.published import GLUE, XTREME, published_rows
from diet_mt.sweeps.sweep import Sweep
from diet_mt.sweeps.variables import Command

from .test_files import swept

# Table -> its rows in the data, the recipe of the pretraining, tuned epochs, tasks that get
# segments in fine-tuning, and those that do not.
Table = tuple[str, str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]
PLAIN = "QQP", "QNLI", "SST-2", "STS-B"
OF_GLUE: Table = GLUE, "mlm", ("5", "10"), ("MNLI", "CoLA"), PLAIN
OF_XTREME: Table = XTREME, "mlm-multilingual", ("3",), ("XNLI", "SQuAD"), ()
TABLES = {2: OF_GLUE, 3: OF_XTREME, 5: OF_XTREME, 8: OF_GLUE, 9: OF_GLUE}
ROWS = {2: 9, 3: 9, 5: 15, 8: 7, 9: 7}


def given(words: Command) -> dict[str, str]:
    return {a: b for a, b in pairwise(words) if a.startswith("--")}


def models(found: Sweep, recipe: str) -> dict[str, tuple[str, Mapping[str, object]]]:
    """Folder of a pretraining -> its encoding, and that with its options, as a row says them."""
    out: dict[str, tuple[str, Mapping[str, object]]] = {}
    for words in found.prepare:
        if words[1] != "pretrain":
            continue
        own = {**recipes.load(recipe).values_of(words[3])}
        own |= {name[2:]: value for name, value in given(words).items()}
        assert given(words)["--recipe"] == recipe
        system = words[3].replace("_", "-")
        options = {
            name: option.kind is bool or option.kind(own[option.flag[2:]])
            for name, option in OPTIONS.items()
            if option.flag[2:] in own
        }
        text = build_position(system, **options).describe()
        out[f"{given(words)['--save-dir']}/checkpoint_best.pt"] = system, positions_of(text)
    return out


@pytest.mark.parametrize("number", TABLES)
def test_every_cell_has_its_runs_and_every_run_its_cell(number: int) -> None:
    table, recipe, epochs, supplemented, plain = TABLES[number]
    found = swept(f"table{number}")
    pretrained = models(found, recipe)
    rows = [row for row in published_rows(table) if number in row.tables]
    assert len(rows) == ROWS[number]
    cells = set()
    used = set()
    for row in rows:
        (model,) = (path for path, model in pretrained.items() if row.is_of(*model))
        used.add(model)
        cells |= {(model, row.segments, task) for task in supplemented}
        cells |= {(model, "none", task) for task in plain}
    assert used == pretrained.keys(), "nothing is pretrained in vain"
    runs: Counter[tuple[str, str, str]] = Counter()
    settings = set()
    for run in found.runs:
        tuning, test, _ = run.commands
        options = given(tuning)
        task = tuning[2].rpartition("/")[2]
        cell = tuning[3], options["--segments"], task
        runs[cell] += 1
        setting = options["--lr"], options["--max-epoch"], options["--seed"]
        assert (cell, setting) not in settings
        settings.add((cell, setting))
        assert test[2:4] == (tuning[2], f"{options['--save-dir']}/checkpoint_best.pt")
        assert test[1] == ("answer" if task == "SQuAD" else "predict")
    assert {setting for _, setting in settings} == {
        (lr, each, seed)
        for lr in ("1e-5", "2e-5", "3e-5", "4e-5")
        for each in epochs
        for seed in "12345"
    }
    assert runs == dict.fromkeys(cells, 4 * len(epochs) * 5)


def test_linformer_is_wider_where_the_paper_has_it_wider() -> None:
    for recipe, k in (("mlm", None), ("mlm-multilingual", 256)):
        for system in ("linformer", "diet_abs_lin"):
            assert recipes.load(recipe).values_of(system).get("linformer-k") == k


@pytest.mark.parametrize("number", [3, 5])
def test_every_language_is_tested(number: int) -> None:
    """XNLI 15, XQuAD 11, MLQA 7, TyDiQA-GoldP 9 (section 4.2)."""
    splits = {run.commands[1][1]: run.commands[1] for run in swept(f"table{number}").runs}
    counts = Counter(word.split("_")[1] for word in splits["answer"] if word.startswith("test_"))
    assert counts == {"xquad": 11, "mlqa": 7, "tydiqa": 9}
    assert sum(word.startswith("test_") for word in splits["predict"]) == 15
