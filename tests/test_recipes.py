"""Recipes: found, merged, refused in a line; and the one copy of one of them that fairseq needs."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from diet_mt import recipes
from diet_mt.errors import UserError

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("name", recipes.names())
def test_every_recipe_says_what_it_is_and_how_it_trains(name: str) -> None:
    assert recipes.read(name)["about"].endswith(".")
    values = recipes.load(name).training
    assert values["optimizer"] == "adam"
    assert sum(values.get(name) is not None for name in ("max-epoch", "max-update")) == 1


def test_a_recipe_takes_over_another(tmp_path: Path) -> None:
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
    ("text", "complaint"),
    [
        ("training: {lr: [1, 2]}", "training, lr: expected a number, text, true or false"),
        ("training: [lr]", "training: expected a mapping of options"),
        ("traning: {lr: 1}", "unknown section traning; did you mean training?"),
        ("about: nothing", "has no section training"),
        ("- lr", "expected sections such as training"),
        ("training: {lr: 1", "line 1: not valid YAML"),
        ("training: {lr: 1}\n\tlr: 2", "line 2: not valid YAML"),
        ("extends: OWN", "extends itself"),
        ("settings: {a: &a [x, x], b: &b [*a, *a], c: [" + "*b, " * 2500 + "]}", "10,000 values"),
        ("settings: &all {all: *all}", "10,000 values"),
        ("about: " + "[" * 5000, "not valid YAML"),
        ("about: " + "9" * 5000, "not valid YAML"),
        ("about: " + "a" * 100_000, "100,000 bytes"),
        ("extends: multi31k", "unknown recipe multi31k; did you mean multi30k?"),
    ],
)
def test_a_wrong_recipe_is_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(text.replace("OWN", str(own)), encoding="utf-8")
    with pytest.raises(UserError) as caught:
        recipes.load(str(own))
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_file_for_hydra_is_the_recipe() -> None:
    """fairseq-hydra-train reads a file of its own, whose numbers are those of the recipe."""
    file = ROOT / "config" / "hydra" / "diet_rel_tiny.yaml"
    sections = yaml.safe_load(file.read_text(encoding="utf-8"))
    sections.pop("hydra")
    given = {}
    for section, values in sections.items():
        for name, value in values.items():
            option = section.replace("_", "-") if name == "_name" else name.replace("_", "-")
            given[option] = value[0] if isinstance(value, list) else value
    expected = dict(recipes.load("multi30k").training) | {"required-batch-size-multiple": 1}
    del expected["precision"]
    assert expected.items() <= given.items()
    # The rest: what the model is, and where things are.
    sizes = [
        f"{side}-{name}"
        for side in ("encoder", "decoder")
        for name in ("layers", "embed-dim", "ffn-embed-dim", "attention-heads")
    ]
    own = {"user-dir", "reset-logging", "seed", "log-format", "task", "data", "model", *sizes}
    assert given.keys() - expected.keys() == own | {"position-encoding", "attention-scale"}
