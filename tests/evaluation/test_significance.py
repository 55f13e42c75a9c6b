"""What is compared with what, what of it is kept, and cases by hand."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest

from diet_mt.errors import UserError
from diet_mt.evaluation import significance
from diet_mt.evaluation.comparisons import file_beside, key_of, read_comparisons
from diet_mt.evaluation.groups import Line, group
from diet_mt.evaluation.json_rows import write_rows
from diet_mt.evaluation.kept import read_references
from diet_mt.evaluation.records import put_result, read_results
from diet_mt.evaluation.significance import check_files, resample
from diet_mt.files import sha256

from ..calling import called
from .rows import seeds_of

SHORT, LONG = "a b c d e", "f g h i j k l m n o"


def compared(
    first: Sequence[Sequence[str]], second: Sequence[Sequence[str]], references: list[str]
) -> tuple[float, float, float]:
    """Two systems, of each the translations of each seed."""
    rows = [seeds_of(name, dict.fromkeys(range(len(seeds)), 1.0))
            for name, seeds in (("t5", first), ("shaw", second))]  # fmt: skip
    lines = [Line(each[0].system, each[0].system, tuple(each)) for each in rows]
    found = resample(lines, [first, second], references)
    assert "nrefs:1|bs:10000|seed:12345|" in found.signature
    return found.difference((lines[0], lines[1]))


def test_a_p_value_by_hand() -> None:
    """Two sentences; the second system has the short one wrong, the first none.

    A resample draws the short one never, once or twice (1/4, 1/2, 1/4), and the second is behind
    by 0, d or 100, where d is the difference in truth: 100 - 100 * (10/15 * 9/13 * 8/11 * 7/9)^1/4
    = 28.5. Their mean is d/2 + 25 = 39.3, and 0 and 100 are more than d away from it.
    """
    difference, half, p = compared([[SHORT, LONG]], [["v w x y z", LONG]], [SHORT, LONG])
    assert difference == pytest.approx(100 - 100 * (10 / 15 * 9 / 13 * 8 / 11 * 7 / 9) ** 0.25)
    assert half == 50
    assert p == pytest.approx(1 / 2, abs=0.02)  # 10,000 draws: a standard deviation of 0.005


def test_seeds_that_differ_make_a_difference_less_sure() -> None:
    good = [f"{SHORT} {word} {LONG}" for word in "pqrstuvwxyz"]
    half = [line.replace("f g h", "1 2 3") for line in good]
    bad = [line.replace("i", "4") for line in half]
    sure = compared([good, good], [half, half], good)
    unsure = compared([good, bad], [half, half], good)
    assert sure[0] > unsure[0] > 10
    assert sure[2] == pytest.approx(1 / 10001)
    assert unsure[2] > 0.1
    assert unsure[1] > 2 * sure[1]


@pytest.mark.parametrize(
    ("system", "baseline", "references"),
    [
        ([SHORT, LONG], [SHORT, LONG], [SHORT, "x y"]),  # the same
        (["x", "y"], ["v", "w"], ["a b c d", "e f g h"]),  # BLEU 0 on either side
        ([f"{SHORT} x", LONG], [f"{SHORT} y", LONG], [SHORT, LONG]),  # wrong in the same way
        ([SHORT], ["a b c x y"], [SHORT]),  # one sentence is its only resample
    ],
)
def test_no_difference_is_not_a_significant_one(
    system: list[str], baseline: list[str], references: list[str]
) -> None:
    assert compared([system], [baseline], references)[2] == 1


ROWS = Path("results/toy.en-de.jsonl")
KEPT = Path("results/significance/toy.en-de.jsonl")
# System and seed -> translations of the two sentences.
SAID = {
    ("sinusoidal", 1): ["v w x y z", LONG],
    ("sinusoidal", 2): [SHORT, "p q"],
    ("diet_rel", 1): [SHORT, LONG],
    ("diet_rel", 5): [SHORT, LONG + " p"],
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """results/toy.en-de.jsonl with hypotheses, and refs.de; the working directory."""
    (tmp_path / "refs.de").write_text(f"{SHORT}\n{LONG}\n", encoding="utf-8")
    (tmp_path / "other.de").write_text("x\n", encoding="utf-8")
    for (system, seed), lines in SAID.items():
        put(tmp_path, system, seed, lines)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(folder: Path, system: str, seed: int, lines: list[str]) -> None:
    text = "".join(line + "\n" for line in lines)
    (row,) = seeds_of(system, {seed: {"diet_rel": 31.0, "sinusoidal": 30.0}.get(system, 1.0)})
    digests = {
        "hypotheses_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "references_sha256": sha256(folder / "refs.de"),
    }
    put_result(folder / "results", dataclasses.replace(row, **digests), text)


def run(*references: str) -> int:
    given = references or ("other.de", "refs.de")
    return called("compare", "results/toy.en-de.jsonl", "--references", *given)


def test_every_pair_is_compared_and_kept(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(place, "shaw", 1, ["v w x y z", "p q"])
    assert run() == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.strip().split("\n")]
    assert [line[1] for line in lines] == ["diet_rel_tiny"] * 2 + ["sinusoidal_tiny"]
    assert [line[2] for line in lines] == ["to sinusoidal_tiny", "to shaw_tiny", "to shaw_tiny"]
    assert [line[-1] for line in lines] == ["seeds 2 and 2", "seeds 2 and 1", "seeds 2 and 1"]
    kept = read_comparisons(KEPT)
    lines_of = {line.system: line.results for line in group(read_results(ROWS))[0].lines}
    assert {row.system: row.seeds for row in kept.values()} == {
        "diet_rel": [1, 5], "sinusoidal": [1, 2], "shaw": [1],
    }  # fmt: skip
    for one, other in combinations(lines_of.values(), 2):
        there, back = kept[key_of(one)].p_to(other), kept[key_of(other)].p_to(one)
        assert there == back is not None
    assert all(row.half_widths.keys() == row.p_values.keys() for row in kept.values())


def test_what_was_kept_is_compared_again(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    capsys.readouterr()
    references = read_references([place / "refs.de"])
    check_files([ROWS], references)
    assert capsys.readouterr().out.endswith("\tcompared again\n")
    rows = list(read_comparisons(KEPT).values())
    for name, more in (("p_values", 0.002), ("half_widths", 0.02)):
        ((mark, value),) = getattr(rows[0], name).items()
        altered = dataclasses.replace(rows[0], **{name: {mark: abs(value - more)}})
        write_rows(KEPT, [altered, *rows[1:]])
        with pytest.raises(UserError, match="comparisons are not what the translations give"):
            check_files([ROWS], references)
        assert f"other comparisons of {altered.system}_tiny" in capsys.readouterr().out
    write_rows(KEPT, rows)
    put(place, "shaw", 1, ["v w x y z", "p q"])  # known to none of them
    with pytest.raises(UserError, match="run diet-mt compare again"):
        check_files([ROWS], references)


def test_what_nobody_reads_is_kept(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `diet-mt compare ... | head -1`."""

    def closed(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(significance, "_show", closed)
    run()
    assert set(read_comparisons(KEPT)) == {
        key_of(line.results) for line in group(read_results(ROWS))[0].lines
    }


def test_what_is_known_stays_and_what_changed_is_computed(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    before = KEPT.read_bytes()
    assert run() == 0
    assert KEPT.read_bytes() == before

    put(place, "diet_rel", 5, [SHORT, LONG + " q"])
    capsys.readouterr()
    assert called("leaderboard", "--brief") == 0
    shown = capsys.readouterr().out
    assert " p\n" not in shown  # it is of other seeds
    assert run() == 0
    found = read_comparisons(KEPT)
    assert len(found) == 2
    assert KEPT.read_bytes() != before


def test_results_without_their_references_are_named_and_left_as_they_are(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    known = read_comparisons(KEPT)
    rows = [*seeds_of("sinusoidal", {1: 1.0}), *seeds_of("shaw", {1: 2.0, 2: 3.0})]
    for row in rows:
        name = f"toy.en-de/unseen.{row.system}.{row.seed}.hyp.txt"
        unseen = dataclasses.replace(row, test_set="unseen test", hypotheses=name)
        put_result(place / "results", unseen, "x\n")
    capsys.readouterr()
    assert run("other.de", "refs.de") == 0
    captured = capsys.readouterr()
    assert captured.out.count("\n") == 1
    assert captured.err.startswith("warning: none of the references are those of ")
    assert "unseen test, en-de: 2 systems have no p-value\n" in captured.err
    assert captured.err.count("\n") == 1
    assert read_comparisons(KEPT) == known


def test_any_two_are_compared_and_not_kept(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("compare", "results/toy.en-de.jsonl", "--references", "refs.de", "--systems")
    assert called(*words, "sinusoidal", "diet_rel") == 0
    (line,) = capsys.readouterr().out.strip().split("\n")
    assert "\tsinusoidal_tiny\tto diet_rel_tiny\t-" in line
    assert not KEPT.exists()
    assert called(*words, "sinusoidal", "t5") == 2
    assert "unknown system t5; choose from diet_rel, sinusoidal" in capsys.readouterr().err


def test_two_need_not_be_in_every_file(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = read_results(ROWS)
    alone = place / "results" / "alone.jsonl"
    write_rows(alone, [row for row in rows if row.system == "sinusoidal"])
    words = ("compare", ROWS, alone, "--references", "refs.de", "--systems")
    assert called(*words, "sinusoidal", "diet_rel") == 0
    first, second = capsys.readouterr().out.strip().split("\n")
    assert "\tsinusoidal_tiny\tto diet_rel_tiny\t-" in first
    assert second.startswith(f"{alone}\tnothing to compare")


def test_a_dry_run_only_lists(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("results/toy.en-de.jsonl", "--references", "refs.de", "--dry-run")
    assert called("compare", *words) == 0
    assert capsys.readouterr().out.endswith("\tdiet_rel_tiny\tto sinusoidal_tiny\n")
    assert not (place / "results" / "significance").exists()


def test_of_one_system_there_is_only_the_interval(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ROWS.read_text(encoding="utf-8").split("\n")
    ROWS.write_text("\n".join(lines[2:]), encoding="utf-8")
    assert run() == 0
    assert "nothing to compare: that needs two systems" in capsys.readouterr().out
    (row,) = read_comparisons(KEPT).values()
    assert row.bleu_ci > 0
    assert row.p_values == {}


@pytest.mark.parametrize("spoil", ["references", "hypotheses", "sentences"])
def test_what_cannot_be_compared_is_told_in_one_line(
    place: Path, capsys: pytest.CaptureFixture[str], spoil: str
) -> None:
    rows = place / "results" / "toy.en-de.jsonl"
    references = "refs.de"
    if spoil == "references":
        references, complaint = "other.de", "none of the references are those of toy test, en-de"
    elif spoil == "hypotheses":
        (place / "results" / "toy.en-de" / "diet_rel_tiny.1.hyp.txt").write_text("x\n")
        complaint = "diet_rel_tiny.1.hyp.txt: changed since it was scored"
    else:
        put(place, "diet_rel", 1, ["x"])
        complaint = "not 2 lines; evaluate again"
    assert run(references) == 2
    captured = capsys.readouterr()
    assert complaint in captured.err
    assert captured.err.count("\n") == 1
    assert not file_beside(rows).exists()
