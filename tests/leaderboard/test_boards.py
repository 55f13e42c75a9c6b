"""Under a table stands what a reader needs, every command once, nothing about what is not there."""

from __future__ import annotations

from dataclasses import replace

from diet_mt.blocks import markdown, text
from diet_mt.evaluation.groups import group
from diet_mt.leaderboard.boards import (
    HOW_TO_TEST,
    board,
    brief_board,
    commands,
    legend,
    remarks,
    signatures,
)
from diet_mt.leaderboard.findings import of_section
from diet_mt.leaderboard.page import page
from diet_mt.leaderboard.readme import with_section
from diet_mt.leaderboard.standings import Section, section_of

from ..evaluation.rows import row, seeds_of
from .made_up import comparisons

WILD = "cpu <!-- results:end --> a|b <i>&"


def test_old_rows_need_few_words(plain: Section) -> None:
    assert remarks(plain) == []
    means, differences, interval, whose, unknown, speed = legend([plain])
    assert means == "BLEU and chrF are means over the seeds."
    assert differences.startswith("to sinusoidal: BLEU of the table minus that of sinusoidal, ")
    assert interval.startswith("±: half of the 95 % interval of BLEU")
    assert whose == "SacreBLEU's, over the sentences of the test set; mean of the seeds."
    assert HOW_TO_TEST in unknown
    assert speed == "Speed is measured side by side, in results/benchmark.md."


def test_everything_is_explained(full: list[Section]) -> None:
    starts = [
        "BLEU and chrF",
        "to sinusoidal: ",
        "±: half",
        "Bootstrap: each of 10,000 resamples",
        "To the mean of a system's n seeds",
        "p (Holm): of the difference to sinusoidal",
        "cluster: a new one begins",
        "length: words of the translations",
        "Rows without sentence counts",
        "paper: Chen",
        "Speed is measured side by side",
    ]
    for note, start in zip(legend(full), starts, strict=True):
        assert note.startswith(start)
    assert remarks(full[0]) == []


def test_without_a_baseline_there_are_no_differences_to_explain() -> None:
    (found,) = group(seeds_of("diet_rel", {1: 30.0}))
    interval, *_ = legend([section_of(found, {})])
    assert interval.startswith("±: ")


def test_only_what_was_not_tested_is_asked_for(full: list[Section]) -> None:
    german, czech = legend(full[:1]), legend(full[2:3])  # Shaw's was not compared in German
    assert any(HOW_TO_TEST in note for note in german)
    assert not any(HOW_TO_TEST in note for note in czech)


def test_seeds_of_different_trainings_are_named() -> None:
    first, second = seeds_of("diet_rel", {1: 30.0, 2: 31.0})
    longer = row(**{**vars(second), "train_command": second.train_command + " --max-epoch 99"})
    (found,) = group([first, longer])
    notes = remarks(section_of(found, {}))
    assert notes == ["Seeds trained by different commands: diet_rel_tiny."]


def test_lines_trained_otherwise_than_the_baseline_are_named_and_in_no_finding() -> None:
    usual = seeds_of("sinusoidal", {1: 30.0})
    places = seeds_of("rotary", {1: 31.0})[0]
    places = replace(places, train_command=places.train_command + " --position-in encoder")
    faster = seeds_of("t5", {1: 39.0})[0]
    faster = replace(faster, train_command=faster.train_command + " --lr 3e-3 --cpu")
    (found,) = group([*usual, places, faster])
    section = section_of(found, {})
    assert remarks(section) == ["Trained otherwise than sinusoidal, --lr 0.003: t5_tiny."]
    assert (
        of_section(section)
        == "rotary_tiny has the highest BLEU, 31.00, 1.00 above sinusoidal_tiny."
    )
    unknown = [replace(each, train_command="") for each in usual]
    (found,) = group([*unknown, faster])
    assert remarks(section_of(found, {})) == []


def test_a_table_without_a_second_seed_says_what_its_tests_leave_out(full: list[Section]) -> None:
    """The way seeds are pooled is said of those that have them."""
    seeds = {"sinusoidal": {1: 38.0}, "shaw": {1: 39.0}}
    rows = [each for system in seeds for each in seeds_of(system, seeds[system])]
    known = comparisons(rows)
    single = section_of(*group(rows), known)
    (note,) = remarks(single)
    assert note.startswith("No system of this table has a second seed: ")
    said = "To the mean of a system's n seeds"
    assert not any(line.startswith(said) for line in legend([single]))
    assert any(line.startswith(said) for line in legend([single, full[0]]))
    assert remarks(section_of(*group(rows), {})) == [], "nothing was tested"


def test_scores_come_with_their_signatures(plain: Section) -> None:
    assert signatures(plain) == [
        "BLEU nrefs:1|tok:13a|version:2.6.0",
        "chrF nrefs:1|nc:6|version:2.6.0",
        "fairseq-fixed 0.12.3.1, torch 2.13.0",
    ]


def test_commands_stand_once_whatever_seed_and_system(plain: Section) -> None:
    assert commands(plain.group) == [
        "fairseq-train data/bin --arch ARCH --seed SEED --save-dir CHECKPOINTS",
        "fairseq-generate data/bin --path CHECKPOINTS/checkpoint_best.pt",
    ]


def test_columns_line_up_in_a_terminal(plain: Section) -> None:
    lines = text(board([plain])).split("\n")
    assert lines[0] == plain.group.title
    table = lines[1:5]
    assert len({line.index("55.50") for line in table[1:]}) == 1
    assert table[0].split()[:2] == ["system", "BLEU"]
    assert table[1].split()[:4] == ["diet_rel_tiny", "34.75", "1.50", "+1.25"]


def test_each_section_has_its_signatures(full: list[Section]) -> None:
    shown = text(board(full))
    assert shown.count("BLEU nrefs:1|tok:13a|version:2.6.0") == len(full)
    assert shown.count("p (Holm): of the difference to sinusoidal") == 1
    assert "\n\n\n" not in shown
    assert "fairseq-train" not in shown


def test_markdown(plain: Section) -> None:
    lines = markdown(board([plain])).split("\n")
    assert (
        lines[2].replace(" ", "") == "|system|BLEU|±|tosinusoidal|chrF|BLEUofeachseed|parameters|"
    )
    assert lines[3].replace("-", "") == "|:|:|:|:|:|:|:|"
    assert lines[4].split()[1:6:2] == ["diet_rel_tiny", "34.75", "1.50"]
    assert "- BLEU nrefs:1|tok:13a|version:2.6.0" in lines
    assert "fairseq-generate data/bin --path CHECKPOINTS/checkpoint_best.pt" in lines


def test_a_brief_board_is_narrow(plain: Section) -> None:
    shown = markdown(brief_board([plain]))
    assert "chrF" not in shown
    assert "<details>" not in shown


def test_nothing_in_a_row_is_markup() -> None:
    fields = dict.fromkeys(("system", "test_set", "bleu_signature", "fairseq", "torch"), WILD)
    found = group([row(**fields, generate_command=f"fairseq-generate '{WILD}'")])
    shown = markdown(board([section_of(each, {}) for each in found]))
    assert "<!--" not in shown
    assert "<i>" not in shown
    readme = "<!-- results:begin -->\n<!-- results:end -->\n"
    once = with_section(readme, "results", shown)
    assert with_section(once, "results", shown) == once


def test_no_form_has_a_speed(full: list[Section]) -> None:
    """That of an evaluation says how busy the machine was. The rows have 1,834 words/s."""
    for shown in (text(board(full)), markdown(board(full)), page(full)):
        assert "1,834" not in shown
        assert "words/s" not in shown
        assert "results/benchmark.md" in shown
