"""The sweeps of config/: what they run."""

from __future__ import annotations

import ast
import shlex
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from diet_mt.cli.main import COMMANDS
from diet_mt.recipes import names, read
from diet_mt.sweeps.sweep import Sweep, sweep_of
from diet_mt.sweeps.variables import MISSING

RUNS = {
    "demo": 4,
    "multi30k": 8 * 3,
    "multi30k.search": 8 * 3,
    "multi30k.where": 6,
    "multi30k.cs-en": 4 * 3,
    "multi30k.others": 15,
    "multi30k.early": 2 * 3,
    "multi30k.ablations": 7,
    # Five systems and DIET-REL without positions in cross-attention with three seeds, eight with
    # one, and randomized positions.
    **dict.fromkeys(
        ("multi30k.short", "multi30k.joined", "multi30k.joined-training", "newstest.short"), 27
    ),
    "multi30k.joined-rate": 6,
    "multi30k.joined-where": 2,
    "multi30k.base": 6,
    "mixed": 5 * 3,
    "mixed.tuning": 5 * 3,
    "mixed.base": 5,
    "mixed.where": 3 * 3,
    "mixed.en-cs": 5,
    "bitext": 6,
    "table4": 12,
    "table4-vaswani": 12,
    "table4-small": 6,
    "mlm": 3,
    "mlm-multilingual": 3,
    "mlm-small": 8,
    # Systems x tasks x rates x epochs x seeds.
    "glue": 3 * 6 * 4 * 2 * 5,
    "glue-small": 3 * 5 * 2 * 1 * 3,
    "xnli": 3 * 4 * 5,
    "xnli-small": 3 * 2 * 3,
    "qa": 3 * 4 * 5,
    # Models x segments x tasks with segments, and models x tasks without, x rates x epochs x seeds.
    "table2": (9 * 2 + 8 * 4) * 4 * 2 * 5,
    "table8": (7 * 2 + 5 * 4) * 4 * 2 * 5,
    "table9": (7 * 2 + 7 * 4) * 4 * 2 * 5,
    # Models x segments x two tasks x rates x seeds.
    "table3": 9 * 2 * 4 * 5,
    "table5": 15 * 2 * 4 * 5,
    "qa-small": 3 * 2 * 3,
}
GOLDEN = Path(__file__).parents[1] / "training" / "commands.txt"
# What only the user can know.
OWN = {
    "train": "text",
    "valid": "text",
    "from": "a folder",
    "source": "de",
    "target": "fr",
    "mnli": "glue",
    "tests": ["xquad_de"],
}
OWN |= {"squad": "squad", "xquad": "xquad", "mlqa": "mlqa", "tydiqa": "tydiqa"}
# Tables of two kinds of tasks, each fine-tuned by its recipe.
TUNED_BY = {"table3": ("xnli", "qa"), "table5": ("xnli", "qa")}


def swept(name: str) -> Sweep:
    content = read(name)
    needed = {key for key, value in content["settings"].items() if value == MISSING}
    used = str(content)
    return sweep_of(
        content, name, {key: OWN[key] for key in sorted(needed) if f"{{{key}}}" in used}
    )


def test_these_are_all() -> None:
    assert set(RUNS) == set(names())


@pytest.mark.parametrize("name", RUNS)
def test_it_runs_what_the_paper_or_the_table_needs(name: str) -> None:
    found = swept(name)
    assert len(found.runs) == RUNS[name]
    for run in found.runs:
        assert str(run.folder) in run.commands[0], "the folder of its checkpoints"
        assert run.commands[0][run.commands[0].index("--recipe") + 1] in TUNED_BY.get(name, (name,))
    for words in found.commands:
        assert words[0] in ("diet-mt", "rm")
        assert "" not in words


@pytest.mark.parametrize("name", RUNS)
def test_its_commands_are_there(name: str) -> None:
    for words in [words for words in swept(name).commands if words[0] == "diet-mt"]:
        assert {" ".join(words[1:2]), " ".join(words[1:3])} & set(COMMANDS)


def test_the_directions_of_table_4() -> None:
    """Every system in every direction; a pair is prepared once for both directions."""
    found = swept("table4")
    options = [dict(pairwise(run.commands[0])) for run in found.runs]
    assert Counter((each["--source-lang"], each["--target-lang"]) for each in options) == {
        ("en", "de"): 3, ("de", "en"): 3, ("en", "cs"): 3, ("cs", "en"): 3,
    }  # fmt: skip
    assert [words[2:4] for words in found.prepare] == [("wmt18", "de-en"), ("wmt18", "cs-en")]
    assert len(found.report) == 2


@pytest.mark.parametrize("name", ["table4", "table4-vaswani"])
def test_the_trainings_of_table_4_are_the_golden_ones(name: str) -> None:
    """tests/training compares what these run with the shell scripts of before, on eight GPUs."""

    def training(words: Sequence[str]) -> tuple[list[str], set[tuple[str, str]]]:
        where = ("--save-dir", "--gpus", "--precision")
        options = zip(words[4::2], words[5::2], strict=True)
        return [*words[:4]], {each for each in options if each[0] not in where}

    golden = [shlex.split(line) for line in GOLDEN.read_text(encoding="utf-8").split("\n")[::2]]
    kept = [training(words) for words in golden if words[4:6] == ["--recipe", name]]
    for run in swept(name).runs:
        assert training(run.commands[0]) in kept


@pytest.mark.parametrize(
    "name", ["multi30k.short", "multi30k.joined", "multi30k.joined-training", "newstest.short"]
)
def test_randomized_positions_have_room_when_decoding(name: str) -> None:
    """One run of each sweep over lengths; a table that ends would refuse them (--beyond-table)."""
    (run,) = [run for run in swept(name).runs if "--position-randomized" in run.commands[0]]
    assert run.name == "sinusoidal_randomized.1"
    places = int(run.commands[0][run.commands[0].index("--position-randomized") + 1])
    tests = [words for words in run.commands if words[1] == "evaluate"]
    for words in tests:
        given = ast.literal_eval(words[words.index("--model-overrides") + 1])
        assert given.pop("beyond_table") == "refuse"
        assert set(given) == {"max_source_positions", "max_target_positions"}
        assert places >= max(given.values())
    assert len(tests) == (4 if "joined" in name else 1)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_scaled_rotary_is_a_decoding_of_rotary(seed: int) -> None:
    (run,) = [run for run in swept("multi30k.short").runs if run.name == f"rotary.{seed}"]
    assert [words[1] for words in run.commands] == ["train", "evaluate", "evaluate"]
    names = [words[words.index("--system") + 1] for words in run.commands[1:]]
    assert names == ["rotary", "rotary_ntk"]


@pytest.mark.parametrize("name", ["glue", "glue-small"])
def test_segments_are_added_on_the_tasks_that_the_paper_names(name: str) -> None:
    for run in swept(name).runs:
        words = run.commands[0]
        plain = words[words.index("--segments") + 1] == "none"
        assert plain == (run.name.partition("/")[0] not in ("MNLI", "CoLA"))
        assert run.commands[1][run.commands[1].index("--split") + 1] == "dev"
