"""The paired bootstrap: a case by hand; nothing is compared twice, or with the wrong one."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

import pytest

from diet_mt.evaluation import significance
from diet_mt.evaluation.comparisons import file_beside, read_comparisons
from diet_mt.evaluation.records import put_result
from diet_mt.files import sha256

from ..calling import called
from .rows import seeds_of

SHORT, LONG = "a b c d e", "f g h i j k l m n o"


def test_a_p_value_by_hand() -> None:
    """Two sentences; the baseline has the short one wrong, the system none.

    A resample draws the short one never, once or twice (1/4, 1/2, 1/4), and the baseline is behind
    by 0, d or 100, where d is the difference in truth: 100 - 100 * (10/15 * 9/13 * 8/11 * 7/9)^1/4
    = 28.5. Their mean is d/2 + 25 = 39.3. Beyond it by more than d is only the case of 100.
    """
    difference, p_value, signature = significance.compare(
        [SHORT, LONG], ["v w x y z", LONG], [SHORT, LONG]
    )
    precisions = 10 / 15 * 9 / 13 * 8 / 11 * 7 / 9
    assert difference == pytest.approx(100 - 100 * precisions**0.25)
    assert p_value == pytest.approx(1 / 4, abs=0.03)  # 1,000 draws: a standard deviation of 0.014
    assert "bs:1000|seed:12345|" in signature
    assert "tok:13a" in signature


def test_equal_translations_do_not_differ() -> None:
    difference, p_value, _ = significance.compare([SHORT, LONG], [SHORT, LONG], [SHORT, "x y"])
    assert (difference, p_value) == (0, 1)


@pytest.mark.parametrize(
    ("system", "baseline", "references"),
    [
        (["x", "y"], ["v", "w"], ["a b c d", "e f g h"]),  # BLEU 0 on either side
        ([f"{SHORT} x", LONG], [f"{SHORT} y", LONG], [SHORT, LONG]),  # wrong in the same way
        ([SHORT], ["a b c x y"], [SHORT]),  # one sentence is its only resample
    ],
)
def test_no_difference_is_not_a_significant_one(
    system: list[str], baseline: list[str], references: list[str]
) -> None:
    """SacreBLEU counts no resample for chance where all of them differ by as much."""
    _, p_value, _ = significance.compare(system, baseline, references)
    assert p_value == 1


def test_the_test_is_the_same_in_any_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = [SHORT, LONG], ["v w x y z", LONG], [SHORT, LONG]
    usual = significance.compare(*pair)
    for seed in ("7", "none"):
        monkeypatch.setenv("SACREBLEU_SEED", seed)
        assert significance.compare(*pair) == usual


def test_the_sign_says_which_is_better() -> None:
    worse, _, _ = significance.compare(["v w x y z", LONG], [SHORT, LONG], [SHORT, LONG])
    assert worse == pytest.approx(-28.5, abs=0.05)


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
    (row,) = seeds_of(system, {seed: 30.0})
    digests = {
        "hypotheses_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "references_sha256": sha256(folder / "refs.de"),
    }
    put_result(folder / "results", dataclasses.replace(row, **digests), text)


def run(*references: str) -> int:
    given = references or ("other.de", "refs.de")
    return called("compare", "results/toy.en-de.jsonl", "--references", *given)


def test_each_is_compared_with_its_seed_or_the_first(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    found = read_comparisons(Path("results/significance/toy.en-de.jsonl")).values()
    assert [(c.system, c.seed, c.baseline, c.baseline_seed) for c in found] == [
        ("diet_rel", 1, "sinusoidal", 1),
        ("diet_rel", 5, "sinusoidal", 1),
    ]
    assert "results/toy.en-de.jsonl\tdiet_rel\tseed 1\t+28.5" in capsys.readouterr().out


def test_what_is_known_is_kept_and_what_changed_is_computed(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    before = Path("results/significance/toy.en-de.jsonl").read_bytes()
    capsys.readouterr()
    assert run("other.de") == 0  # nothing to compute, so no references are needed
    assert capsys.readouterr().out.count("(kept)") == 2
    assert Path("results/significance/toy.en-de.jsonl").read_bytes() == before

    put(place, "diet_rel", 5, [SHORT, LONG + " q"])
    assert called("leaderboard") == 0
    shown = capsys.readouterr().out
    assert ", ? " in shown  # the other seed's is stale
    assert run() == 0
    assert capsys.readouterr().out.count("(kept)") == 1
    found = list(read_comparisons(Path("results/significance/toy.en-de.jsonl")).values())
    assert len({c.key for c in found}) == len(found)


def test_results_without_their_references_are_named_and_left_out(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [*seeds_of("sinusoidal", {1: 1.0}), *seeds_of("shaw", {1: 2.0, 2: 3.0})]
    for row in rows:
        name = f"toy.en-de/unseen.{row.system}.{row.seed}.hyp.txt"
        unseen = dataclasses.replace(row, test_set="unseen test", hypotheses=name)
        put_result(place / "results", unseen, "x\n")
    assert run("other.de", "refs.de") == 0
    captured = capsys.readouterr()
    assert captured.out.count("\tdiet_rel\t") == captured.out.count("\n") == 2
    assert captured.err.startswith("warning: none of the references are those of ")
    assert "unseen test, en-de: no p-value for 2 of the results\n" in captured.err
    assert captured.err.count("\n") == 1
    found = read_comparisons(Path("results/significance/toy.en-de.jsonl")).values()
    assert {c.system for c in found} == {"diet_rel"}


def test_any_two_are_compared_and_not_kept(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("compare", "results/toy.en-de.jsonl", "--references", "refs.de", "--systems")
    assert called(*words, "sinusoidal", "diet_rel") == 0
    first, second = capsys.readouterr().out.strip().split("\n")
    assert "\tsinusoidal\tseed 1\t-28.5" in first
    assert second.endswith("\tto diet_rel, p 1.000") or "\tseed 2\t" in second
    assert not (place / "results" / "significance").exists()
    assert called(*words, "sinusoidal", "t5") == 2
    assert "unknown system t5; there is diet_rel, sinusoidal" in capsys.readouterr().err


def test_a_dry_run_only_lists(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("results/toy.en-de.jsonl", "--references", "refs.de", "--dry-run")
    assert called("compare", *words) == 0
    assert capsys.readouterr().out.count("\tto sinusoidal\n") == 2
    assert not (place / "results" / "significance").exists()


def test_without_a_baseline_there_is_nothing_to_do(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = place / "results" / "toy.en-de.jsonl"
    lines = rows.read_text(encoding="utf-8").split("\n")
    rows.write_text("\n".join(lines[2:]), encoding="utf-8")
    assert run() == 0
    assert "nothing to compare: that needs sinusoidal" in capsys.readouterr().out
    assert not file_beside(rows).exists()


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
        text = rows.read_text(encoding="utf-8")
        rows.write_text(text.replace('"sentences": 2', '"sentences": 3'), encoding="utf-8")
        complaint = "not 2 lines; evaluate again"
    assert run(references) == 2
    captured = capsys.readouterr()
    assert complaint in captured.err
    assert captured.err.count("\n") == 1
    assert not file_beside(rows).exists()
