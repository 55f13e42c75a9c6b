"""``diet-mt lengths`` of made-up rows: tables, pictures, and errors."""

from __future__ import annotations

import dataclasses
import hashlib
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from diet_mt.evaluation.hypotheses import put_result
from diet_mt.evaluation.lengths import parts_of
from diet_mt.report.blocks import Heading, Table
from diet_mt.report.lengths import blocks_of, picture, sheets_of
from diet_mt.report.style import drawn
from diet_mt.system.files import sha256

from ..evaluation.rows import seeds_of
from ..processes import called

SHORT, LONG = "the dog", "the cat sees the old dog and runs away"
TEST = ["ein Hund", "die Katze sieht den alten Hund und läuft weg"]
TESTS = ("test.de", "test2.de")
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
            keep(tmp_path, system, seed, "test", lines)
    keep(tmp_path, "diet_rel", 1, "test2", TEST[1:])
    return tmp_path


def keep(
    place: Path, system: str, seed: int, test: str, lines: list[str], direction: str = "en-de"
) -> None:
    """A row of the corpus toy.en-de; its references are ``test`` in the target language."""
    text = "".join(f"{line}\n" for line in lines * 6)
    (result,) = seeds_of(
        system, {seed: 30.0}, test_set=test, direction=direction, sentences=6 * len(lines)
    )
    result = dataclasses.replace(
        result,
        hypotheses=f"toy.en-de/{system}.{seed}.{direction}.{test}.hyp.txt",
        hypotheses_sha256=hashlib.sha256(text.encode()).hexdigest(),
        references_sha256=sha256(place / f"{test}.{direction[-2:]}"),
    )
    put_result(place, result, text)


def sheets(place: Path, *tests: str, cut: Any = CUT, **how: Any) -> list[Any]:
    references = [place / name for name in tests or TESTS]
    return sheets_of([place / "toy.en-de.jsonl"], references, cut=cut, **how)


def tables(sheets: list[Any]) -> dict[str, dict[str, dict[str, str]]]:
    """Heading -> system -> head of a column -> text."""
    blocks = blocks_of(sheets)
    return {
        heading.text: {row[0]: dict(zip(table.heads, row, strict=True)) for row in table.rows}
        for heading, table in pairwise(blocks)
        if isinstance(heading, Heading) and isinstance(table, Table)
    }


def test_tables_of_each_test_set(place: Path) -> None:
    shown = tables(sheets(place, training=place / "test.de"))
    ratio = shown["length ratio, test, en-de, 12 sentences"]
    # Three of nine words; the mean of nine and three.
    assert ratio["sinusoidal_tiny"] == {
        "system": "sinusoidal_tiny", "2 (6)": "1.000 ± 0.000", "9 (6)": "0.333 ± 0.000"
    }  # fmt: skip
    assert ratio["diet_rel_tiny"]["9 (6)"] == "0.667 ± 0.000"
    assert "9 (6)" in shown["BLEU, test2, en-de, 6 sentences"]["diet_rel_tiny"]
    assert "Word accuracy by tenth of the sentence, test2, en-de, 6 sentences" in shown
    recall = shown["Recall of words by frequency in training, test, en-de, 12 sentences"]
    assert recall["sinusoidal_tiny"]["5–19"] != "100.0"


def test_differences_to_the_baseline(place: Path) -> None:
    """Sentences that are all alike: every resample has the same difference."""
    gains, title = (
        "BLEU to sinusoidal, test, en-de, 12 sentences",
        "BLEU, test, en-de, 12 sentences",
    )
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


def test_each_test_set_a_bucket(place: Path) -> None:
    shown = tables(sheets(place, cut=None))["BLEU, en-de"]
    assert shown["sinusoidal_tiny"]["test2 (6)"] == "", "not decoded"
    assert shown["diet_rel_tiny"]["test2 (6)"] == "100.0 ± 0.0"
    figure = picture(sheets(place, cut=None))
    bleu, _ = figure.axes  # no word accuracy, which is not counted then
    # The levels of sinusoidal are below where it has all test sets.
    assert [label.get_text() for label in bleu.get_xticklabels()] == ["test", "test2"]
    keep(place, "sinusoidal", 1, "test2", TEST[1:])
    bleu, _ = picture(sheets(place, cut=None)).axes
    assert bleu.get_xticklabels()[1].get_text() == "test2\n100.0"


def test_each_direction_has_a_table_of_its_own(place: Path) -> None:
    keep(place, "diet_rel", 1, "test", [SHORT, "the cat"], "de-en")
    shown = tables(sheets(place, *TESTS, "test.en", cut=None))
    # Of two seeds 11 and 5 of 11 tokens; 4 of 11.
    assert shown["length ratio, en-de"]["sinusoidal_tiny"]["test (12)"].startswith("0.455")
    row = shown["length ratio, de-en"]["diet_rel_tiny"]
    assert row.keys() == {"system", "test (12)"}
    assert row["test (12)"].startswith("0.364")


def test_sources_of_subwords_and_the_longest_of_training(place: Path) -> None:
    sources = [place / "bpe.en", place / "test2.en"]
    shown = tables(sheets(place, sources=sources))
    assert {"3 (6)", "12 (6)"} < shown["BLEU, test, en-de, 12 sentences"]["diet_rel_tiny"].keys()
    figure = picture(sheets(place, sources=sources, systems=["diet_rel"]))
    assert len(figure.axes) == 6
    assert drawn(figure, "svg") == drawn(
        picture(sheets(place, sources=sources, systems=["diet_rel"])), "svg"
    )
    plain, marked = (
        [text.get_text() for text in picture(sheets(place, trained_to=n)).legends[0].get_texts()]
        for n in (None, 5)
    )
    assert set(marked) - set(plain) == {"longest of training"}


@pytest.mark.parametrize(
    ("words", "tests", "named"),
    [
        ("", TESTS[:1], "test2"),
        ("--systems shaw", TESTS, "shaw"),
        ("--width 0", TESTS, "--width: 0"),
        ("--sources test.de test2.de", TESTS, "test.de"),
        ("--train empty", TESTS, "empty"),
        ("--train test.en", TESTS, "test.en"),
        ("--train bpe.de", TESTS, "bpe.de"),
        ("--train spm.de", TESTS, "spm.de"),
        ("--sources bpe.en test2.en --trained-to 5", TESTS, "--trained-to"),  # tokens and words
        ("--sources gone.en test2.en", TESTS, "gone.en"),
    ],
)
def test_wrong_input_is_named(
    place: Path,
    words: str,
    tests: tuple[str, ...],
    named: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(place)
    (place / "empty").touch()
    (place / "bpe.de").write_text("ein H@@ und\n")
    (place / "spm.de").write_text("▁ein ▁H und\n")
    assert called("lengths", "toy.en-de.jsonl", "--references", *tests, *words.split()) == 2
    error = capsys.readouterr()
    assert error.out == ""
    assert named in error.err


def test_two_test_sets_of_one_name_are_not_mixed(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = place / "toy.en-de.jsonl"
    rows.write_text(rows.read_text().replace('"test_set": "test2"', '"test_set": "test"'))
    words = ("lengths", rows, "--references", *(place / name for name in TESTS), "--by-test-set")
    assert called(*words) == 2
    assert "en-de: two test sets named test; give one" in capsys.readouterr().err
    (place / "test2.en").unlink()  # no sources next to the references
    assert called(*words) == 2
    assert "test2.de" in capsys.readouterr().err
