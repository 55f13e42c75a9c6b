"""The command: what it reads, where it writes, and that the project's own boards are its work."""

from __future__ import annotations

import dataclasses
import hashlib
import re
import shutil
from pathlib import Path

import pytest

from diet_mt.evaluation.records import put_result
from diet_mt.made_of import marked

from ..calling import called
from ..evaluation.rows import seeds_of
from ..leaderboard.said import write_said

ROOT = Path(__file__).resolve().parent.parent.parent
OWN = sorted((ROOT / "results").glob("*.jsonl"))
MADE = (
    "**/lengths.*",
    "joined/training.*",
    "short/newstest.*",
    "curves/*.png",
    "mlm/*.png",
    "figures/**/*.*",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with results, hypotheses and a README; the working directory."""
    rows = [*seeds_of("sinusoidal", {1: 33.0, 2: 34.0}), *seeds_of("diet_rel", {1: 34.5})]
    rows += seeds_of("none", {1: 27.0}, direction="de-en")
    for row in rows:
        text = f"{row.system} {row.seed}\n"
        digest = hashlib.sha256(text.encode()).hexdigest()
        put_result(tmp_path / "results", dataclasses.replace(row, hypotheses_sha256=digest), text)
    (tmp_path / "README.md").write_text(
        "before\n<!-- results:begin -->\n<!-- results:end -->\nafter\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def complaint(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What the command says in its one line of error."""
    assert called("leaderboard", *words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    return captured.err


def test_without_arguments_all_results_as_text(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called("leaderboard") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("toy test, en-de, trained on toy.en-de, size tiny, 2 sentences, ")
    assert "  diet_rel_tiny    34.50" in shown
    assert "toy test, de-en, " in shown


def test_filters(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--directions", "en-de", "--test-sets", "toy test", "--systems", "diet_rel"]
    assert called("leaderboard", "results/toy.en-de.jsonl", *words) == 0
    shown = capsys.readouterr().out
    assert "+1.00" in shown
    assert "sinusoidal_tiny" not in shown
    assert "de-en" not in shown
    assert "unknown direction cs-en; did you mean de-en?" in complaint(
        capsys, "--directions", "cs-en"
    )


def test_the_readme_is_rewritten_and_checked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "section 'results'" in complaint(capsys, "--readme", "README.md", "--check")
    assert called("leaderboard", "--readme", "README.md") == 0
    shown = Path("README.md").read_text(encoding="utf-8")
    assert "| diet_rel_tiny | 34.50 | 1.50 | +1.00 |" in re.sub(" +", " ", shown)
    assert called("leaderboard", "--readme", "README.md", "--check") == 0


def test_a_page_is_written_and_checked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--format", "html", "--out", "pages/board.html")
    assert "it is not made" in complaint(capsys, *words, "--check")
    assert called("leaderboard", *words) == 0
    assert Path("pages/board.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert called("leaderboard", *words, "--check") == 0


def test_what_was_written_is_verified(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = Path("results").glob("*.jsonl")
    made = ["results/README.md", "results/leaderboard.html", f"results/{row.stem}.svg"]
    Path("README.md").rename(made[0])
    assert called("leaderboard", "--readme", made[0]) == 0
    assert called("leaderboard", "--format", "html", "--out", made[1]) == 0
    assert called("leaderboard", str(row), "--format", "svg", "--out", made[2]) == 0
    capsys.readouterr()
    assert called("verify", *made) == 0
    assert capsys.readouterr().out.count(": OK") == 3
    lines = row.read_text(encoding="utf-8").split("\n")
    row.write_text("\n".join(lines[1:]), encoding="utf-8")
    for path in made:
        assert called("verify", path) == 2
        assert f"{path}: " in capsys.readouterr().err
    assert called("verify", "alone.svg") == 2
    assert "alone.svg: no such file" in capsys.readouterr().err
    Path("alone.svg").touch()
    assert called("leaderboard", "--readme", made[0]) == 0
    capsys.readouterr()
    assert called("verify", "alone.svg", "nowhere.html", made[0]) == 2
    said = capsys.readouterr()
    assert "alone.svg: no rows beside it" in said.out
    assert "nowhere.html: no such file" in said.out
    assert f"{made[0]}: OK" in said.out
    assert "2 of 3 checks failed" in said.err


BRIEF = "diet-mt leaderboard results/toy.en-de.jsonl --directions en-de --brief"


def test_a_page_says_by_which_command_its_section_is_made(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = folder / "README.md"
    page.write_text(f"<!-- results:begin {BRIEF} -->\n<!-- results:end -->\n")
    words = BRIEF.split()[2:]
    assert called("leaderboard", *words, "--readme", page) == 0
    assert page.read_text().startswith(f"<!-- results:begin {BRIEF} -->\n\n**toy test, en-de,")
    monkeypatch.chdir("/")
    assert called("verify", page) == 0
    page.write_text(page.read_text().replace("34.50", "35.50"))
    capsys.readouterr()
    assert called("verify", page) == 2
    assert "its section 'results' is not made from these files" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("rm -r results", "its section is made by rm -r results; verify knows only diet-mt"),
        ("diet-mt evaluate x", "verify knows only diet-mt leaderboard"),
        (f"{BRIEF} --readme other.md", "must name rows, and no file but its own"),
        (f"{BRIEF} --out other.html", "must name rows, and no file but its own"),
        ("diet-mt leaderboard --brief", "must name rows"),
        (f"{BRIEF} --shell x", "unknown option --shell"),
        (f"{BRIEF} 'x", "No closing quotation"),
    ],
)
def test_no_other_command_of_a_page_is_run(
    folder: Path, command: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"<!-- results:begin {command} -->\n<!-- results:end -->\n"
    (folder / "README.md").write_text(text)
    before = sorted(folder.rglob("*"))
    assert called("verify", "README.md") == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert said.count("\n") == 1
    assert sorted(folder.rglob("*")) == before
    assert (folder / "README.md").read_text() == text


def test_a_whole_page_is_made_of_the_folder_of_its_name(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (rows,) = (folder / "results").glob("*.jsonl")
    words = ("--format", "markdown", "--out", "results.md")
    assert called("leaderboard", rows, *words) == 0
    assert called("verify", "results.md") == 0
    Path("results.md").write_text("other\n")
    assert called("verify", "results.md") == 2
    Path("picture.png").write_bytes(b"\x89PNG")
    assert called("verify", "picture.png") == 2
    assert "picture.png: does not say of which rows it was made" in capsys.readouterr().err


def test_with_references_sentences_are_kept_and_the_page_is_made_again_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "results").mkdir()
    write_said(tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    words = ("--format", "html", "--out", "page.html")
    assert called("leaderboard", *words) == 0
    without = Path("page.html").read_text(encoding="utf-8")
    assert called("leaderboard", *words, "--references", "results/test.de") == 0
    whole = Path("page.html").read_text(encoding="utf-8")
    assert "application/json" in whole
    assert "application/json" not in without
    assert called("leaderboard", *words, "--check") == 0
    assert called("leaderboard", *words, "--check", "--references", "results/test.de") == 0


@pytest.mark.parametrize(
    ("content", "what"), [("other\n", "changed since it was scored"), (None, "missing")]
)
def test_the_check_looks_at_the_hypotheses(
    folder: Path, capsys: pytest.CaptureFixture[str], content: str | None, what: str
) -> None:
    assert called("leaderboard", "--readme", "README.md") == 0
    file = folder / "results" / "toy.en-de" / "none_tiny.1.hyp.txt"
    file.unlink()
    if content is not None:
        file.write_text(content, encoding="utf-8")
    found = complaint(capsys, "--readme", "README.md", "--check")
    assert f"none_tiny.1.hyp.txt: {what}" in found


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--check"], "--check needs the file to check"),
        (["--readme", "README.md", "--out", "x"], "--readme takes Markdown and no --out"),
        (["--readme", "README.md", "--format", "html"], "--readme takes Markdown"),
        (["--references", "x.de"], "--references are for pictures: give --format html or svg"),
        (["--format", "html", "--sources", "x.en"], "--sources are those of --references"),
        (["--format", "html", "--picture", "speed"], "--picture is for --format svg"),
        (["--format", "svg", "--picture", "speed"], "--picture speed: there is nothing to draw"),
        (["--format", "html", "--references", "README.md"], "none of the --references are those"),
        (["gone.jsonl"], "gone.jsonl: cannot be read (No such file or directory)"),
        (["empty.jsonl"], "the files hold no results"),
        (["--readme", "gone.md"], "gone.md: cannot be read (No such file"),
    ],
)
def test_mistakes_are_told_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], what: str
) -> None:
    Path("empty.jsonl").write_text("")
    assert what in complaint(capsys, *words)
    assert not Path("x").exists()


def test_where_there_are_no_results_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "no results/*.jsonl here" in complaint(capsys)


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "results/README.md",
        "results/tasks.md",
        "results/leaderboard.html",
        "results/early/README.md",
        "results/search/README.md",
        "results/short/README.md",
        "results/joined/README.md",
        "results/early/multi30k.en-de.svg",
        "results/early/multi30k.en-de.lengths.svg",
        *(
            str(path.relative_to(ROOT))
            for pattern in MADE
            for path in sorted((ROOT / "results").glob(pattern))
            if path.suffix in (".md", ".png")
        ),
    ],
)
def test_the_projects_own_boards_are_those_of_its_results(page: str) -> None:
    assert OWN
    assert called("verify", ROOT / page) == 0


def test_a_page_names_its_rows_and_is_checked_against_all_that_lie_beside_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (rows,) = (folder / "results").glob("*.jsonl")
    deep = folder / "results" / "deep"
    deep.mkdir()
    (deep / "more.jsonl").write_bytes(rows.read_bytes().replace(b'"toy test"', b'"another"'))
    shutil.copytree(rows.with_suffix(""), deep / rows.stem)
    page = folder / "results" / "page.html"
    words = (rows, deep / "more.jsonl", "--format", "html", "--out", page)
    assert called("leaderboard", *words) == 0
    text = page.read_text(encoding="utf-8")
    assert f'<meta name="rows" content="{rows.name} deep/more.jsonl">' in text
    assert called("verify", page) == 0
    for name in ("--help", "/etc/passwd", "../other.jsonl"):
        page.write_text(text.replace("deep/more.jsonl", name), encoding="utf-8")
        assert called("verify", page) == 2
        assert f"names rows outside of its folder: {name}" in capsys.readouterr().err
    page.write_text(text, encoding="utf-8")
    (folder / "results" / "new.jsonl").write_bytes(rows.read_bytes())
    assert called("verify", page) == 2
    assert "made without" in capsys.readouterr().err


def test_a_mark_does_not_take_the_place_of_the_check(folder: Path) -> None:
    (rows,) = (folder / "results").glob("*.jsonl")
    page = folder / "results" / "README.md"
    page.write_text("<!-- results:begin -->\n<!-- results:end -->\n", encoding="utf-8")
    assert called("leaderboard", rows, "--readme", page) == 0
    assert called("verify", page) == 0
    text = page.read_text(encoding="utf-8").replace("BLEU", "BLUE")
    page.write_bytes(marked(text.encode(), page, [rows]))
    assert called("verify", page) == 2


def test_a_page_without_a_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert called("verify", ROOT / "results" / "figures.md") == 2
    assert "figures.md: no command writes it as a whole" in capsys.readouterr().err
