"""Comparable results, and their names."""

from __future__ import annotations

import dataclasses
import shlex
from typing import Any

import pytest

from diet_mt.evaluation.groups import BASELINE, Group, group, size_of
from diet_mt.evaluation.records import Result
from diet_mt.system.errors import UserError

from .rows import row, seeds_of


@pytest.fixture
def results() -> list[Result]:
    return [
        *seeds_of("sinusoidal", {1: 33.0, 3: 35.0, 2: 34.0}),
        *seeds_of("diet_rel", {2: 35.5, 1: 34.0}),
        *seeds_of("none", {1: 27.0}),
    ]


def names(own: Group) -> set[str]:
    return {line.name for line in own.lines}


def test_means_and_seeds(results: list[Result]) -> None:
    (own,) = group(results)
    assert [line.name for line in own.lines] == ["diet_rel_tiny", "sinusoidal_tiny", "none_tiny"]
    assert [line.bleu for line in own.lines] == [34.75, 34.0, 27.0]
    assert [[r.seed for r in line.results] for line in own.lines] == [[1, 2], [1, 2, 3], [1]]
    assert own.baseline is own.lines[1]
    (own,) = group(result for result in results if result.system != BASELINE)
    assert own.baseline is None
    first, second = seeds_of("diet_rel", {1: 30.0, 2: 31.0}, length_ratio=0.9, roles=50.0)
    (own,) = group([first, dataclasses.replace(second, length_ratio=1.0, roles=None)])
    (line,) = own.lines
    assert (line.mean("length_ratio"), line.mean("roles")) == (pytest.approx(0.95), 50)


@pytest.mark.parametrize(
    "changes", [{"hypotheses": "x"}, {"seed": 9, "parameters": 7, "hypotheses": "x"}]
)
def test_two_results_for_one_place_are_refused(
    results: list[Result], changes: dict[str, Any]
) -> None:
    """Of one seed, or models of different sizes."""
    with pytest.raises(UserError, match="diet_rel_tiny"):
        group([*results, dataclasses.replace(results[-2], **changes)])


@pytest.mark.parametrize(
    "change",
    [
        {"test_set": "another test"},
        {"direction": "de-en"},
        {"corpus": "more.en-de"},
        {"sentences": 3},
        {"references_sha256": "f" * 64},
        {"arch": "diet_rel_base"},
        {"model": "encoder-layers=6"},
        {"beam": 5},
        {"lenpen": 1.0},
        {"length_penalty": "gnmt"},
        {"checkpoint": "average.pt"},
        {"averaged": 5},
        {"options": "--nbest 2"},
        {"subwords": "spm"},
        {"source_mended": "3 lines"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_only_what_is_alike_is_compared(results: list[Result], change: dict[str, object]) -> None:
    alone = row(**change)
    first, second = group([*results, alone])
    assert (len(first.lines), second.results) == (3, [alone])
    assert second.baseline is None
    assert first.title != second.title


def test_names_tell_lines_apart(results: list[Result]) -> None:
    """A name of its own, also that of an architecture; other options of the encoding."""
    others = [
        row(system="diet_rel+layer-wise", hypotheses="own"),
        row(system="diet_rel_tiny", arch="diet_rel_tiny", hypotheses="x"),
        row(positions="diet-rel sharing=layer-wise scale=head", seed=7),
    ]
    (own,) = group([*results, *others])
    assert names(own) - {"sinusoidal_tiny", "none_tiny"} == {
        "diet_rel_tiny",
        "diet_rel+layer-wise (diet_rel_tiny)",
        "diet_rel_tiny (diet_rel_tiny)",
        "diet_rel_tiny [sharing=layer-wise scale=head]",
    }
    both = [
        f"diet-abs sharing={s} scale=head rank={r}" for s in ("none", "head-wise") for r in (1, 2)
    ]
    (own,) = group(row(arch="diet_abs_tiny", system="diet_abs", positions=each) for each in both)
    assert names(own) == {
        f"diet_abs_tiny [sharing={s} rank={r}]" for s in ("none", "head-wise") for r in (1, 2)
    }


def test_a_chosen_length_penalty_is_a_group_of_its_own_whatever_was_chosen() -> None:
    tried = {"lenpen_tried": "0:30.10 0.6:31.25 1.4:31.40"}
    rows = [
        *seeds_of("diet_rel", {1: 30.0}),
        *seeds_of("diet_rel", {1: 31.0}, lenpen=1.4, **tried),
        *seeds_of("shaw", {1: 32.0}, lenpen=0.6, **tried),
        *seeds_of("shaw", {1: 33.0}, lenpen=0.6, lenpen_tried="0.6:31.25 1.4:31.40"),
    ]
    groups = group(rows)
    assert [len(each.lines) for each in groups] == [1, 2, 1]
    assert groups[1].conditions.lenpen == "chosen on the validation set from 0 0.6 1.4"


def test_the_size_is_in_the_architecture() -> None:
    sizes = {"diet_abs_lin_tiny": "tiny", "transformer_iwslt_de_en": "", "transformer": ""}
    assert {arch: size_of(row(system="own", arch=arch)) for arch in sizes} == sizes


def overridden(system: str, overrides: dict[str, object], options: str = "", seed: int = 1) -> Any:
    changes = {"system": system, "arch": f"{system}_tiny", "seed": seed, "hypotheses": str(seed)}
    return row(**changes, overrides=overrides, options=options)


def test_overrides_of_positions_are_part_of_the_system() -> None:
    """In any order; other options are conditions of a group."""
    clipped = {"beyond_table": "clip"}
    scaled = {**clipped, "position_scaling": "ntk"}
    given = {"sinusoidal": clipped, "rotary": scaled, "t5": {}}
    (own,) = group(overridden(*each) for each in given.items())
    assert own.conditions.options == ""
    assert {line.system for line in own.lines} == given.keys()
    backwards = dict(reversed(scaled.items()))
    rows = [overridden("rotary", clipped), overridden("rotary", scaled)]
    (own,) = group([*rows, overridden("rotary", backwards, seed=2)])
    lines = {line.name: [result.seed for result in line.results] for line in own.lines}
    assert lines == {"rotary_tiny": [1], "rotary_tiny [position_scaling=ntk]": [1, 2]}
    (own,) = group([overridden("rotary", {**clipped, "quant_noise_pq": 0.1}, "--max-len-b 5")])
    assert shlex.split(own.conditions.options) == [
        *("--model-overrides", "{'quant_noise_pq': 0.1}", "--max-len-b", "5")
    ]


def test_the_baseline_has_the_fewest_overrides() -> None:
    changed = seeds_of("sinusoidal", {1: 31.0}, overrides={"max_source_positions": 64})
    (own,) = group([*changed, *seeds_of("sinusoidal", {1: 30.0})])
    assert own.baseline is own.lines[1]
