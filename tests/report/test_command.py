"""``diet-mt leaderboard``: what it reads and writes; the project's own tables are up to date."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from ..evaluation.rows import put, seeds_of
from ..processes import called

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with results and a README; the working directory."""
    rows = [*seeds_of("sinusoidal", {1: 33.0, 2: 34.0}), *seeds_of("diet_rel", {1: 34.5})]
    rows += seeds_of("none", {1: 27.0}, direction="de-en")
    (tmp_path / "refs.de").write_text("a b c d\n", encoding="utf-8")
    for row in rows:
        put(tmp_path / "results", row, [f"a b {row.system} {row.seed}"], tmp_path / "refs.de")
    readme = "before\n<!-- results:begin -->\n<!-- results:end -->\nafter\n"
    (tmp_path / "README.md").write_text(readme, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_all_results_or_some(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called("leaderboard") == 0
    shown = capsys.readouterr().out
    assert "  diet_rel_tiny    34.50" in shown
    assert "toy test, de-en, " in shown
    words = ["--directions", "en-de", "--test-sets", "toy test", "--systems", "diet_rel"]
    assert called("leaderboard", "results/toy.en-de.jsonl", *words) == 0
    shown = capsys.readouterr().out
    assert "+1.00" in shown
    assert "sinusoidal_tiny" not in shown
    assert "de-en" not in shown


@pytest.mark.parametrize("form", ["text", "markdown", "html", "readme"])
def test_each_format_is_written_and_checked(folder: Path, form: str) -> None:
    words = ("--readme", "README.md")
    if form != "readme":
        words = ("--format", form, "--out", "new/board")
    assert called("leaderboard", *words, "--check") == 2
    assert not Path("new").exists()
    assert called("leaderboard", *words) == 0
    assert called("leaderboard", *words, "--check") == 0
    if form == "readme":
        shown = re.sub(" +", " ", Path("README.md").read_text(encoding="utf-8"))
        assert re.search(r"\| diet_rel_tiny \| 34\.50 \|.* \+1\.00 \|", shown)


def command_in(page: Path) -> list[str]:
    """The command of a section, or the usual one: all rows next to its page."""
    match = re.search(r"^<!-- results:begin diet-mt (.*) -->$", page.read_text("utf-8"), re.M)
    if match:
        return shlex.split(match[1])
    rows = sorted(str(path) for path in page.parent.glob("*.jsonl"))
    return ["leaderboard", *rows, "--readme", str(page)]


PARTS = ("int8", "joined", "long", "search", "short")
PAGES = ["README.md", "results/translation.md"]
PAGES += [f"results/{part}/README.md" for part in PARTS]


@pytest.mark.parametrize("page", [*PAGES, "results/tasks.md"])
def test_the_tables_of_our_pages_are_made_of_their_rows(
    page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    if page in PAGES:
        words = command_in(Path(page))
    else:
        rows = sorted(map(str, Path("results/tasks").glob("*.jsonl")))
        words = ["leaderboard", *rows, "--format", "markdown", "--out", page]
    assert called(*words, "--check") == 0


@pytest.mark.parametrize(
    ("page", "command"),
    [
        ("lengths.md", "lengths multi30k.en-de.jsonl --buckets 5"),
        ("joined/lengths.md", "lengths joined/multi30k.en-de.joined.jsonl --by-test-set"),
        ("joined/training.md", "lengths joined/multi30k.en-de.joined-training.jsonl --by-test-set"),
    ],
)
def test_tables_of_lengths_are_made_of_their_rows(
    page: str, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands of scripts/results.sh."""
    monkeypatch.chdir(ROOT / "results")
    assert called(*command.split(), "--format", "markdown") == 0
    assert capsys.readouterr().out == Path(page).read_text(encoding="utf-8")


@pytest.mark.parametrize("part", ["", "cs-en", "mlm"])
def test_tables_of_heads_are_made_of_their_rows(
    part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ROOT / "results" / "figures" / part
    for file in folder.glob("*.jsonl.gz"):
        shutil.copy(file, tmp_path)
    assert called("figures", "--out", tmp_path, "--format", "markdown") == 0
    expected = (folder / "heads.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out.replace(str(tmp_path), f"results/figures/{part}") == expected


def test_our_page_is_made_of_its_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Apart from its pictures, which depend on the version of matplotlib."""
    monkeypatch.chdir(ROOT / "results")
    parts = ("", "short", "joined", "tasks")
    rows = [str(path) for part in parts for path in sorted(Path(part).glob("*.jsonl"))]
    assert called("leaderboard", *rows, "--format", "html", "--out", tmp_path / "page") == 0
    pages = (file.read_text("utf-8") for file in (tmp_path / "page", Path("leaderboard.html")))
    ours, new = (re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL) for page in pages)
    assert ours == new
