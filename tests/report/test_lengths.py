"""``diet-mt lengths``: parts and estimates by hand and by SacreBLEU; tables, pictures, errors."""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import sacrebleu
from sacrebleu.metrics import BLEU

from diet_mt.evaluation.scores import Floats, counter
from diet_mt.report.blocks import Heading, Table
from diet_mt.report.lengths import (
    blocks_of,
    estimate,
    parts_of,
    picture,
    sheets_of,
)
from diet_mt.report.style import drawn

from ..evaluation.rows import put, seeds_of
from ..processes import called

WORDS = ["der", "Hund", "die", "Katze", "sieht", "alt", ",", "schnell"]


def made_up(sentences: int = 60) -> tuple[list[str], list[list[str]]]:
    """References of 3 to 14 words, and the hypotheses of two seeds."""
    rng = Random(3)
    lines = [" ".join(rng.choices(WORDS, k=rng.randint(2, 13))) + " ." for _ in range(sentences)]
    noisy = [
        [" ".join(word for word in line.split() if rng.random() < 0.9) or "." for line in lines]
        for _ in range(2)
    ]
    return lines, noisy


def ratio(sums: Floats) -> Floats:
    return np.asarray(sums[..., 0] / sums[..., 1])


def test_parts_by_hand() -> None:
    """Merged until they are large enough; or so many of about as many sentences."""
    lengths = [1] * 3 + [6] * 2 + [11] * 4 + [12] * 3 + [30]
    names = {part.name: len(part.members) for part in parts_of(lengths, width=5, least=4)}
    assert names == {"1–6": 5, "11–30": 8}
    names = {part.name: len(part.members) for part in parts_of(lengths, width=5, least=1)}
    assert names == {"1": 3, "6": 2, "11–12": 7, "30": 1}
    assert [part.name for part in parts_of(lengths, least=100)] == ["1–30"]
    parts = parts_of([9, 1, 2, 8, 3, 7, 4, 6], count=4, least=1)
    assert [part.name for part in parts] == ["1–2", "3–4", "6–7", "8–9"]
    assert (parts[0].members, parts[0].mean_length) == ((1, 2), 1.5)
    # Sentences of one length stay together.
    assert [part.name for part in parts_of([5] * 7 + [6], count=2, least=1)] == ["5", "6"]


def test_estimates_are_those_of_sacrebleu() -> None:
    """Means of the seeds; the same hypotheses twice are no more evidence than once."""
    references, seeds = made_up()
    statistics = [counter(references)(seed) for seed in seeds]
    scores = [sacrebleu.corpus_bleu(seed, [references]) for seed in seeds]
    bleu, length = estimate(statistics), estimate(statistics, ratio)
    assert bleu.value == pytest.approx(sum(each.score for each in scores) / 2)
    assert length.value == pytest.approx(sum(each.sys_len / each.ref_len for each in scores) / 2)
    for each in (bleu, length):
        assert each.samples.min() < each.value < each.samples.max()
    once, twice = (estimate(n * statistics[:1]) for n in (1, 2))
    assert (once.value, once.half_width) == (twice.value, twice.half_width)


def test_an_interval_by_the_formula_of_a_share() -> None:
    """Of n sentences a share p: p ± 1.96 sqrt(p (1 - p) / n); 1,000 resamples come within 15 %."""
    right = np.array([[1.0, 1.0]] * 280 + [[0.0, 1.0]] * 120)
    share = estimate([right], ratio)
    assert share.value == pytest.approx(0.7)
    assert share.half_width == pytest.approx(1.96 * math.sqrt(0.7 * 0.3 / 400), rel=0.15)


def test_a_difference_is_that_of_means_over_the_same_resamples() -> None:
    """Compared with 200 draws of its own, each scored by SacreBLEU."""
    references, (one, two) = made_up(80)
    three = [" ".join(line.split()[:-1]) for line in references]
    of_seed, rng, metric = counter(references), Random(4), BLEU()
    gain = estimate([of_seed(one), of_seed(two)]) - estimate([of_seed(three)])

    def gap(rows: list[int]) -> float:
        refs = [[references[n] for n in rows]]
        texts = ([lines[n] for n in rows] for lines in (one, two, three))
        first, second, other = (metric.corpus_score(text, refs).score for text in texts)
        return (first + second) / 2 - other

    assert gain.value == pytest.approx(gap([*range(80)]))
    samples = sorted(gap(rng.choices(range(80), k=80)) for _ in range(200))
    assert gain.half_width == pytest.approx((samples[-5] - samples[4]) / 2, rel=0.2)


SHORT, LONG = "the dog", "the cat sees the old dog and runs away"
TEST = ["ein Hund", "die Katze sieht den alten Hund und läuft weg"]
CUT = partial(parts_of, least=6)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """toy.en-de.jsonl and test.{en,de}, six sentences of each length; once test2, too."""
    texts = {"test.en": [SHORT, LONG], "test.de": TEST, "test2.en": [LONG], "test2.de": TEST[1:]}
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines * 6))
    (tmp_path / "bpe.en").write_text("d@@ o@@ g\na b c d e f g h i j k l\n" * 6)
    good, bad = TEST, [TEST[0], "die Katze sieht"]
    for system, seeds in {"sinusoidal": (bad, bad), "diet_rel": (good, bad)}.items():
        for seed, lines in enumerate(seeds, start=1):
            add(tmp_path, system, seed, "test", lines)
    add(tmp_path, "diet_rel", 1, "test2", TEST[1:])
    return tmp_path


def add(place: Path, system: str, seed: int, test: str, lines: list[str], **changes: Any) -> None:
    """A row of the corpus toy.en-de; its references are ``test`` in the target language."""
    (result,) = seeds_of(system, {seed: 30.0}, test_set=test, **changes)
    name = f"toy.en-de/{system}.{seed}.{result.direction}.{test}.hyp.txt"
    references = place / f"{test}.{result.direction[-2:]}"
    result = dataclasses.replace(result, hypotheses=name)
    put(place, result, 6 * lines, references, source=True)


def sheets(place: Path, cut: Any = CUT, **how: Any) -> list[Any]:
    return sheets_of([place / "toy.en-de.jsonl"], cut=cut, **how)


def tables(sheets: list[Any]) -> dict[str, dict[str, dict[str, str]]]:
    """Heading -> system -> head of a column -> text."""
    return {
        heading.text: {row[0]: dict(zip(table.heads, row, strict=True)) for row in table.rows}
        for heading, table in pairwise(blocks_of(sheets))
        if isinstance(heading, Heading) and isinstance(table, Table)
    }


def test_tables_of_each_test_set(place: Path) -> None:
    shown = tables(sheets(place))
    ratio = shown["length ratio, test, en-de, 12 sentences"]
    # Three of nine words; the mean of nine and three.
    assert ratio["sinusoidal_tiny"] == {
        "system": "sinusoidal_tiny", "2 (6)": "1.000 ± 0.000", "9 (6)": "0.333 ± 0.000"
    }  # fmt: skip
    assert ratio["diet_rel_tiny"]["9 (6)"] == "0.667 ± 0.000"
    assert "9 (6)" in shown["BLEU, test2, en-de, 6 sentences"]["diet_rel_tiny"]


def test_differences_to_the_baseline(place: Path) -> None:
    """Sentences that are all alike: every resample has the same difference."""
    gains, title = (f"BLEU{to}, test, en-de, 12 sentences" for to in (" to sinusoidal", ""))
    shown = tables(sheets(place))
    long = {name: float(row["9 (6)"].split()[0]) for name, row in shown[title].items()}
    (row,) = shown[gains].values()
    assert row["2 (6)"] == "+0.0 ± 0.0"
    gap, _, half = row["9 (6)"].split()
    assert (float(gap) > 40, half) == (True, "0.0")
    assert float(gap) == pytest.approx(long["diet_rel_tiny"] - long["sinusoidal_tiny"], abs=0.11)
    alone = tables(sheets(place, systems=["diet_rel"]))
    assert alone[gains] == shown[gains]
    assert list(alone[title]) == ["diet_rel_tiny"]
    alone = tables(sheets(place, systems=["sinusoidal"]))
    assert not any("test2" in title or "to sinusoidal" in title for title in alone)


def test_each_test_set_a_part_and_each_direction_a_table(place: Path) -> None:
    shown = tables(sheets(place, cut=None))["BLEU, en-de"]
    assert shown["sinusoidal_tiny"]["test2 (6)"] == "", "not decoded"
    assert shown["diet_rel_tiny"]["test2 (6)"] == "100.0 ± 0.0"
    add(place, "diet_rel", 1, "test", [SHORT, "the cat"], direction="de-en")
    shown = tables(sheets(place, cut=None))
    # Of two seeds 11 and 5 of 11 tokens; 4 of 11.
    assert shown["length ratio, en-de"]["sinusoidal_tiny"]["test (12)"].startswith("0.455")
    row = shown["length ratio, de-en"]["diet_rel_tiny"]
    assert row.keys() == {"system", "test (12)"}
    assert row["test (12)"].startswith("0.364")
    # The levels of sinusoidal are below.
    figure = picture(sheets(place, cut=None, systems=["diet_rel", "sinusoidal"]))
    assert figure.axes[0].get_xticklabels()[0].get_text().startswith("test\n")


def test_systems_under_other_conditions_have_a_table_of_their_own(place: Path) -> None:
    add(place, "shaw", 1, "test", TEST, beam=1)
    shown = tables(sheets(place))
    assert {"beam 1", "beam 10"} <= {part for title in shown for part in title.split(", ")}


def test_sources_of_subwords_and_the_longest_of_training(place: Path) -> None:
    (place / "toy.en-de.jsonl").write_text(
        "".join(line for line in (place / "toy.en-de.jsonl").open() if '"test2"' not in line)
    )
    given = {"sources": [place / "bpe.en"], "references": [place / "test.de"]}
    shown = tables(sheets(place, **given))
    assert {"3 (6)", "12 (6)"} < shown["BLEU, test, en-de, 12 sentences"]["diet_rel_tiny"].keys()
    one, other = (drawn(picture(sheets(place, **given)), "svg") for _ in range(2))
    assert one == other
    plain, marked = (
        [text.get_text() for text in picture(sheets(place), n).legends[0].get_texts()]
        for n in (None, 5)
    )
    assert set(marked) - set(plain) == {"longest of training"}


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("--sources bpe.en --references test.de", "test2"),
        ("--sources bpe.en", "--references"),
        ("--sources test.de test2.de --references test.de test2.de", "test.de"),
        ("--sources test2.en test2.en --references test.de test2.de", "test2.en: 6 lines"),
    ],
)
def test_wrong_input_is_named(
    place: Path,
    words: str,
    named: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(place)
    assert called("lengths", "toy.en-de.jsonl", *words.split()) == 2
    error = capsys.readouterr()
    assert error.out == ""
    assert named in error.err


def test_two_test_sets_of_one_name_are_not_mixed(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = place / "toy.en-de.jsonl"
    rows.write_text(rows.read_text().replace('"test_set": "test2"', '"test_set": "test"'))
    assert called("lengths", rows, "--by-test-set") == 2
    assert "two test sets named test, en-de" in capsys.readouterr().err


def test_rows_without_counts_or_sources(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = place / "toy.en-de.jsonl"
    for path in (place / "sentences").iterdir():
        path.unlink()
    assert called("lengths", rows) == 2
    assert "evaluate again" in capsys.readouterr().err
    for path in (rows, place / "test.en"):
        path.unlink()
    add(place, "shaw", 1, "test", TEST)
    assert called("lengths", rows) == 2
    assert "--sources" in capsys.readouterr().err
