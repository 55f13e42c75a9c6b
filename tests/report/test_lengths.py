"""``diet-mt lengths`` of made-up rows: what is shown, and what is refused."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

import pytest

from diet_mt.evaluation.hypotheses import put_result
from diet_mt.files import sha256

from ..calling import called
from ..evaluation.rows import seeds_of

SHORT, LONG = "the dog", "the cat sees the old dog and runs away"
TEST = ["ein Hund", "die Katze sieht den alten Hund und läuft weg"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """results/toy.en-de.jsonl and test.{en,de}, six sentences of each length; once test2, too."""
    texts = {"test.en": [SHORT, LONG], "test.de": TEST, "test2.en": [LONG], "test2.de": TEST[1:]}
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines * 6))
    good, bad = TEST, [TEST[0], "die Katze sieht"]
    for system, said in {"sinusoidal": (bad, bad), "diet_rel": (good, bad)}.items():
        for seed, lines in enumerate(said, start=1):
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
    put_result(place / "results", result, text)


def lengths(
    place: Path,
    *words: object,
    tests: tuple[str, ...] = ("test", "test2"),
    more: tuple[str, ...] = (),
) -> int:
    references = [place / name for name in (*(f"{test}.de" for test in tests), *more)]
    rows = place / "results" / "toy.en-de.jsonl"
    return called("lengths", rows, "--references", *references, *words)


def tables(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """What was printed, by title."""
    found = (block.partition("\n") for block in capsys.readouterr().out.split("\n\n"))
    return {title: rows for title, _, rows in found if rows}


def panels(picture: Path) -> int:
    return picture.read_text(encoding="utf-8").count('<g id="axes_')


def test_tables_of_each_test_set(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lengths(place, "--least", 6, "--train", place / "test.de") == 0
    blocks = tables(capsys)
    ratios = blocks["length ratio, test, en-de, 12 sentences"].split("\n")
    assert ratios[0].split() == ["system", "2", "(6)", "9", "(6)"]
    rows = {line.split()[0]: line.split()[1:] for line in ratios[1:]}
    assert rows["sinusoidal_tiny"][0::3] == ["1.000", "0.333"]  # three of nine words
    assert rows["diet_rel_tiny"][0::3] == ["1.000", "0.667"]  # the mean of nine and three
    assert "9 (6)" in blocks["BLEU, test2, en-de, 6 sentences"]
    assert "Word accuracy by tenth of the sentence, test2, en-de, 6 sentences" in blocks
    assert "Recall of words by frequency in training, test, en-de, 12 sentences" in blocks


def test_differences_to_the_baseline(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sentences that are all alike: every resample has the same difference."""
    assert lengths(place, "--least", 6) == 0
    blocks = tables(capsys)
    bleu = blocks["BLEU, test, en-de, 12 sentences"].split("\n")[1:]
    long = {line.split()[0]: float(line.split()[4]) for line in bleu}
    (row,) = blocks["BLEU to sinusoidal, test, en-de, 12 sentences"].split("\n")[1:]
    name, short, _, none, gap, _, half_width = row.split()
    assert (name, short, none, half_width) == ("diet_rel_tiny", "+0.0", "0.0", "0.0")
    assert float(gap) == pytest.approx(long["diet_rel_tiny"] - long["sinusoidal_tiny"], abs=0.11)
    assert float(gap) > 40
    assert lengths(place, "--systems", "diet_rel", "--least", 6) == 0
    alone = tables(capsys)
    assert alone["BLEU to sinusoidal, test, en-de, 12 sentences"].split("\n")[1:] == [row]
    assert all(
        "sinusoidal" not in found
        for title, found in alone.items()
        if "to sinusoidal" not in title and not title.startswith("Heads")
    )
    assert lengths(place, "--systems", "sinusoidal", "--least", 6) == 0
    alone = tables(capsys)
    assert not any("test2" in title or "to sinusoidal" in title for title in alone)


def test_each_test_set_a_bucket(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lengths(place, "--by-test-set", "--format", "markdown") == 0
    bleu = capsys.readouterr().out.split("**chrF")[0].strip().split("\n")
    cells = [cell.strip() for cell in bleu[2].split("|")]
    assert cells == ["", "system", "test (12)", "test2 (6)", ""]
    row = next(line for line in bleu if "sinusoidal" in line)
    assert row.split("|")[3].strip() == "", "not decoded"
    assert "100.0 ± 0.0" in next(line for line in bleu if "diet_rel" in line)
    drawn = place / "a.svg"
    assert lengths(place, "--by-test-set", "--out", drawn) == 0
    capsys.readouterr()
    assert panels(drawn) == 2  # no word accuracy, which is not counted then
    below = "; below, BLEU of sinusoidal"
    assert below not in drawn.read_text(encoding="utf-8"), "it has not all test sets"
    rows = place / "results" / "toy.en-de.jsonl"
    assert called("lengths", rows, "--references", place / "test.de", "--out", drawn) == 2
    keep(place, "sinusoidal", 1, "test2", TEST[1:])
    assert lengths(place, "--by-test-set", "--out", drawn) == 0
    picture = drawn.read_text(encoding="utf-8")
    assert f"test sets{below}" in picture
    assert picture.index(">test2<") < picture.index(">100.0<") < picture.index(below)


def test_each_direction_has_a_table_of_its_own(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(place, "diet_rel", 1, "test", [SHORT, "the cat"], "de-en")
    assert lengths(place, "--by-test-set", more=("test.en",)) == 0
    blocks = tables(capsys)
    rows = {
        direction: blocks[f"length ratio, {direction}"].split("\n")
        for direction in ("en-de", "de-en")
    }
    assert rows["en-de"][0].split() == ["system", "test", "(12)", "test2", "(6)"]
    assert rows["de-en"][0].split() == ["system", "test", "(12)"]
    ratio = {name: found[1].split()[1] for name, found in rows.items()}
    # Of two seeds 11 and 5 of 11 tokens; 4 of 11.
    assert ratio == {"en-de": "0.455", "de-en": "0.364"}


def test_two_test_sets_of_one_name_are_not_mixed(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = place / "results" / "toy.en-de.jsonl"
    text = rows.read_text().replace('"test_set": "test2"', '"test_set": "test"')
    rows.write_text(text)
    assert lengths(place, "--by-test-set") == 2
    assert "en-de: two test sets named test; give one" in capsys.readouterr().err


def test_sources_of_subwords_and_pictures(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "bpe.en").write_text("d@@ o@@ g\na b c d e f g h i j k l\n" * 6)
    more = ("--systems", "diet_rel", "--least", 1)
    sources = ("--sources", place / "bpe.en", place / "test2.en")
    for name in ("a.png", "a.svg"):
        assert lengths(place, *more, *sources, "--out", place / name) == 0
        assert (place / name).stat().st_size > 10_000
    assert panels(place / "a.svg") == 6
    out = capsys.readouterr().out
    assert out.split("\n")[1].split() == ["system", "3", "(6)", "12", "(6)"]
    assert "sinusoidal_tiny" not in out
    assert "lengths of the sources in tokens" in out
    first = (place / "a.svg").read_bytes()
    assert lengths(place, *more, *sources, "--out", place / "new" / "a.svg") == 0
    assert (place / "new" / "a.svg").read_bytes() == first


def test_the_longest_of_training_is_marked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, more in (("without.svg", ()), ("with.svg", ("--trained-to", 5))):
        assert lengths(place, "--least", 6, *more, "--out", place / name) == 0
    without, _, out = capsys.readouterr().out.partition("not of the seeds")
    assert "longest of training" not in without
    assert "Longest source of training: 5 words." in out
    # Of this test set, tokens; of the other, words.
    sources = ("--sources", place / "bpe.en", place / "test2.en")
    (place / "bpe.en").write_text("d@@ o@@ g\na b c d e f g h i j k l\n" * 6)
    assert lengths(place, "--least", 1, *sources, "--trained-to", 5) == 2
    assert "--trained-to: some sources are words, others tokens" in capsys.readouterr().err
    assert "longest of training" not in (place / "without.svg").read_text(encoding="utf-8")
    assert "longest of training" in (place / "with.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "tests", "complaint"),
    [
        ((), ("test",), "none of the references are those of test2"),
        (("--systems", "shaw"), ("test", "test2"), "unknown system shaw; choose from"),
        (("--out", "a.gif"), ("test", "test2"), "--out a.gif: name a picture, .png or .svg"),
        (("--width", "0"), ("test", "test2"), "0: expected a whole number of at least 1"),
        (("--sources", "x.en"), ("test", "test2"), "1 --sources, but 2 --references"),
        (
            ("--sources", "test.de", "test2.de"),
            ("test", "test2"),
            "test.de: the references, not their sources",
        ),
        (("--train", "empty"), ("test", "test2"), "empty: has 0 % of the words of "),
        (("--train", "test.en"), ("test", "test2"), "test.en: has 0 % of the words of "),
        (("--train", "bpe.de"), ("test", "test2"), "bpe.de: subwords; give the raw"),
        (("--train", "spm.de"), ("test", "test2"), "spm.de: subwords; give the raw"),
        (("--by-test-set", "--least", "9"), ("test", "test2"), "--least: not with --by-test-set"),
        (("--by-test-set", "--trained-to", "9"), ("test", "test2"), "--trained-to: not with --by"),
        (("--width", "3", "--buckets", "4"), ("test", "test2"), "not allowed with"),
    ],
)
def test_bad_input_is_one_line(
    place: Path,
    words: tuple[str, ...],
    tests: tuple[str, ...],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(place)
    (place / "empty").touch()
    (place / "bpe.de").write_text("ein H@@ und\n")
    (place / "spm.de").write_text("▁ein ▁H und\n")
    assert lengths(place, *words, tests=tests) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.startswith("error: ")
    assert found.err.count("\n") == 1
    assert complaint in found.err


def test_rows_given_twice_are_named(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = place / "results" / "toy.en-de.jsonl"
    assert called("lengths", rows, rows, "--references", place / "test.de") == 2
    assert "toy.en-de.jsonl: given more than once" in capsys.readouterr().err


def test_missing_sources_are_named(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "test2.en").unlink()
    assert lengths(place) == 2
    assert "test2.de: no sources next to it; give them by --sources" in (capsys.readouterr().err)
    (place / "test2.en").write_text("one\n")
    assert lengths(place) == 2
    assert "test2.en has 1; line n of one must" in capsys.readouterr().err
