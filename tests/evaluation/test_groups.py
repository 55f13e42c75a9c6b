"""What is compared, with what, and under which name."""

from __future__ import annotations

import shlex

import pytest

from diet_mt.errors import UserError
from diet_mt.evaluation.groups import BASELINE, group, size_of
from diet_mt.evaluation.records import Result

from ..evaluation.rows import row, seeds_of


@pytest.fixture
def results() -> list[Result]:
    return [
        *seeds_of("sinusoidal", {1: 33.0, 3: 35.0, 2: 34.0}),
        *seeds_of("diet_rel", {2: 35.5, 1: 34.0}),
        *seeds_of("none", {1: 27.0}),
    ]


def test_means_seeds_and_differences(results: list[Result]) -> None:
    (found,) = group(results)
    assert [line.name for line in found.lines] == ["diet_rel_tiny", "sinusoidal_tiny", "none_tiny"]
    assert [line.bleu for line in found.lines] == [34.75, 34.0, 27.0]
    assert [found.gain(line) for line in found.lines] == [0.75, 0.0, -7.0]  # of these means
    assert [[r.seed for r in line.results] for line in found.lines] == [[1, 2], [1, 2, 3], [1]]


def test_without_a_baseline_there_is_no_difference(results: list[Result]) -> None:
    (found,) = group(result for result in results if result.system != BASELINE)
    assert [found.gain(line) for line in found.lines] == [None, None]


def test_a_system_with_the_name_of_an_architecture_has_a_line_of_its_own() -> None:
    own = row(system="diet_rel_tiny", arch="diet_rel_tiny", hypotheses="x")
    (found,) = group([*seeds_of("diet_rel", {1: 34.0}), own])
    assert {line.name for line in found.lines} == {"diet_rel_tiny", "diet_rel_tiny (diet_rel_tiny)"}


def test_models_of_different_sizes_are_no_seeds_of_one(results: list[Result]) -> None:
    other = seeds_of("sinusoidal", {9: 34.0}, parameters=7)
    with pytest.raises(UserError, match=r"sinusoidal_tiny, .* seed 9: 7 parameters, other seeds"):
        group([*results, *other])


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
        {"checkpoint": "checkpoint_last.pt"},
        {"averaged": 5},
        {"options": "--nbest 2"},
        {"subwords": "spm"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_only_what_is_alike_is_compared(results: list[Result], change: dict[str, object]) -> None:
    alone = row(**change)
    first, second = group([*results, alone])
    assert (len(first.lines), second.results) == (3, [alone])
    assert second.gain(second.lines[0]) is None
    assert first.title != second.title


def test_a_title_says_what_was_done() -> None:
    (found,) = group([row(averaged=5, checkpoint="average.pt", length_penalty="gnmt")])
    assert found.title == (
        "toy test, en-de, trained on toy.en-de, size tiny, 2 sentences, beam 10, length penalty "
        "0.6 (gnmt), average.pt (average of 5)"
    )
    (found,) = group([row(model="encoder-layers=6 share-all-embeddings")])
    assert ", size tiny, encoder-layers=6, share-all-embeddings, 2 sentences, " in found.title
    (found,) = group([row(options="--max-len-b 5", subwords="spm")])
    assert found.title.endswith(", checkpoint_best.pt, subwords spm, options --max-len-b 5")


def test_an_own_name_is_a_line_of_its_own(results: list[Result]) -> None:
    (found,) = group([*results, row(system="diet_rel+layer-wise", hypotheses="own")])
    assert "diet_rel+layer-wise (diet_rel_tiny)" in [line.name for line in found.lines]


def test_other_options_of_an_encoding_are_a_line_of_their_own(results: list[Result]) -> None:
    other = row(positions="diet-rel sharing=layer-wise scale=head", seed=7)
    (found,) = group([*results, other])
    assert {line.name for line in found.lines if line.system == "diet_rel"} == {
        "diet_rel_tiny",
        "diet_rel_tiny [sharing=layer-wise scale=head]",
    }


def test_ranks_and_their_sharing_are_lines_with_names_of_their_own() -> None:
    systems = {
        f"diet-abs sharing={sharing} scale=head{rank}": f"[sharing={sharing}{rank}]"
        for sharing in ("none", "head-wise", "layer-wise")
        for rank in ("", " rank=64", " rank=128", " rank=512")
    }
    rows = [
        row(arch="diet_abs_tiny", system="diet_abs", positions=positions, seed=seed)
        for seed, positions in enumerate(2 * list(systems), start=1)
    ]
    (found,) = group(rows)
    for line in found.lines:
        first, second = line.results
        assert first.positions == second.positions
        assert line.name == f"diet_abs_tiny {systems[first.encoding]}"
    assert len(found.lines) == len(systems)


def test_two_results_for_one_place_are_refused(results: list[Result]) -> None:
    with pytest.raises(UserError, match="two results of diet_rel_tiny, seed 1, toy test; give"):
        group([*results, results[-2]])


def test_a_chosen_length_penalty_is_a_group_of_its_own_whatever_was_chosen() -> None:
    tried = {"lenpen_tried": "0:30.10 0.6:31.25 1.4:31.40"}
    rows = [
        *seeds_of("diet_rel", {1: 30.0}),
        *seeds_of("diet_rel", {1: 31.0}, lenpen=1.4, **tried),
        *seeds_of("shaw", {1: 32.0}, lenpen=0.6, **tried),
        *seeds_of("shaw", {1: 33.0}, lenpen=0.6, lenpen_tried="0.6:31.25 1.4:31.40"),
    ]
    assert [len(each.lines) for each in group(rows)] == [1, 2, 1]
    assert ", length penalty chosen on the validation set from 0 0.6 1.4 (fairseq), " in (
        group(rows)[1].title
    )


def test_normalized_sources_are_a_group_of_their_own() -> None:
    rows = [*seeds_of("diet_rel", {1: 30.0}), *seeds_of("shaw", {1: 32.0}, source_mended="3 lines")]
    assert [len(each.lines) for each in group(rows)] == [1, 1]


def test_the_length_ratio_is_that_of_all_seeds() -> None:
    first, second = seeds_of("diet_rel", {1: 30.0, 2: 31.0}, length_ratio=0.9)
    (found,) = group([first, row(**{**vars(second), "length_ratio": 1.0})])
    assert found.lines[0].length_ratio == pytest.approx(0.95)
    (found,) = group([first, row(**{**vars(second), "length_ratio": None})])
    assert found.lines[0].length_ratio is None


def test_an_interval_may_have_no_width() -> None:
    """BLEU 0 on every resample is a measurement like any other."""
    (found,) = group([*seeds_of("none", {1: 0.0}, bleu_ci=0.0), *seeds_of("none", {2: 1.0})])
    assert found.lines[0].half_width == 0.75


@pytest.mark.parametrize(
    ("system", "arch", "size"),
    [
        ("diet_rel", "diet_rel_base", "base"),
        ("my own", "diet_abs_lin_tiny", "tiny"),
        ("transformer_iwslt_de_en", "transformer_iwslt_de_en", ""),
        ("own", "transformer", ""),
        ("own", "transformer_iwslt_de_en", ""),
    ],
)
def test_the_size_is_in_the_architecture(system: str, arch: str, size: str) -> None:
    assert size_of(row(system=system, arch=arch)) == size


def test_overrides_of_positions_are_part_of_the_system() -> None:
    """Other options are conditions of a group."""

    def told(system: str, overrides: dict[str, object], options: str = "") -> Result:
        changes = {"system": system, "arch": f"{system}_tiny", "seed": 1}
        return row(**changes, overrides=overrides, options=options)

    clipped = {"beyond_table": "clip"}
    scaled = {**clipped, "position_scaling": "ntk"}
    (found,) = group([told("sinusoidal", clipped), told("rotary", scaled), told("t5", {})])
    assert found.conditions.options == ""
    assert {line.system for line in found.lines} == {"sinusoidal", "rotary", "t5"}
    (found,) = group([told("rotary", clipped), told("rotary", scaled)])
    first, second = sorted(line.name for line in found.lines)
    assert (first, second) == ("rotary_tiny", "rotary_tiny [position_scaling=ntk]")
    quantized = {**clipped, "quant_noise_pq": 0.1}
    (found,) = group([told("rotary", quantized, "--max-len-b 5")])
    assert shlex.split(found.conditions.options) == [
        *("--model-overrides", "{'quant_noise_pq': 0.1}", "--max-len-b", "5")
    ]


def test_the_order_of_overrides_makes_no_other_system() -> None:
    overrides = {"beyond_table": "clip", "position_scaling": "ntk"}
    backwards = dict(reversed(overrides.items()))
    rows = [
        row(seed=seed, hypotheses=str(seed), overrides=each)
        for seed, each in enumerate([overrides, backwards], start=1)
    ]
    (found,) = group(rows)
    (line,) = found.lines
    assert [result.seed for result in line.results] == [1, 2]


def test_the_baseline_has_the_fewest_overrides() -> None:
    rows = [
        *seeds_of("sinusoidal", {1: 30.0}),
        *seeds_of("sinusoidal", {1: 31.0}, overrides={"max_source_positions": 64}),
        *seeds_of("t5", {1: 32.0}),
    ]
    (found,) = group(rows)
    assert found.baseline is not None
    assert found.baseline.bleu == 30.0
    assert [found.gain(line) for line in found.lines] == [2.0, 1.0, 0.0]
