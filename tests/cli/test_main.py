"""``diet-mt``: its commands, and what it says of a wrong one."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from diet_mt import __version__
from diet_mt.cli import main as module
from diet_mt.cli.main import COMMANDS, GROUPS, main, parser_of
from diet_mt.files import write_text

from ..commands.runner import ROOT, run_python
from ..evaluation.rows import row

LIGHT = ("compare", "leaderboard", "verify")


def outcome(argv: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Status, standard output, standard error."""
    try:
        status = main(argv)
    except SystemExit as stop:
        status = int(stop.code or 0)
    said = capsys.readouterr()
    return status, said.out, said.err


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_shows_its_name_and_does_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = outcome([*name.split(), "--help"], capsys)
    assert (status, err) == (0, "")
    assert out.startswith(f"usage: diet-mt {name} ")
    assert f"diet-mt {name} " in out.partition("\n\n")[2], "an example in the docstring"
    assert "python -m" not in out
    assert list(tmp_path.iterdir()) == []


# Of the others, what they do not know is an option of fairseq's.
OWN = [name for name in COMMANDS if not getattr(parser_of(name), "passes_on", False)]


@pytest.mark.parametrize("name", OWN)
def test_a_misspelt_option_of_a_command_is_one_line(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome([*name.split(), "--hepl"], capsys) == (
        2,
        "",
        "error: unknown option --hepl; did you mean --help?\n",
    )


def test_the_help_lists_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = outcome(["--help"], capsys)
    assert (status, err) == (0, "")
    for name, (_, what) in COMMANDS.items():
        assert f"  {name} " in out
        assert what in out
    assert outcome(["-h"], capsys) == (0, out, "")


@pytest.mark.parametrize("group", GROUPS)
def test_the_help_of_a_group_lists_its_own(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = outcome([group, "--help"], capsys)
    assert (status, err) == (0, "")
    for name in COMMANDS:
        assert (f"  {name} " in out) == name.startswith(f"{group} ")


@pytest.mark.parametrize("argv", [[], *([group] for group in GROUPS)])
def test_no_command_is_an_error(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = outcome(argv, capsys)
    assert (status, out) == (2, "")
    assert err.startswith("usage: diet-mt ")


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(["--version"], capsys) == (0, f"diet-mt {__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("leaderbord", "unknown command leaderbord; did you mean leaderboard?"),
        ("comapre x.jsonl", "unknown command comapre; did you mean compare?"),
        ("bench sped", "unknown command bench sped; did you mean bench speed?"),
        ("bnech speed", "unknown command bnech; did you mean bench?"),
        ("speed", "unknown command speed; did you mean bench speed?"),
        ("xyzzy", "unknown command xyzzy; see diet-mt --help"),
        ("--hlep", "unknown option --hlep; did you mean --help?"),
        ("leaderboard --directon en-de", "unknown option --directon; did you mean --directions?"),
        ("leaderboard --directon=en-de", "unknown option --directon; did you mean --directions?"),
        # Neither cut short nor hidden by what else is missing.
        ("leaderboard --form html", "unknown option --form; did you mean --format?"),
        ("compare --refrences x", "unknown option --refrences; did you mean --references?"),
        ("leaderboard -v", "unknown option -v; see diet-mt leaderboard --help"),
        ("leaderboard --format htm", "argument --format: unknown value htm; did you mean html?"),
        (
            "leaderboard --format x",
            "argument --format: unknown value x; choose from text, markdown, html, svg; "
            "see diet-mt leaderboard --help",
        ),
        (
            "verify",
            "the following arguments are required: PATH; "
            "see diet-mt verify --help",
        ),
        ("bench speed --rounds 0", "argument --rounds: 0: expected a whole number of at least 1; "
         "see diet-mt bench speed --help"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(words.split(), capsys) == (2, "", f"error: {said}\n")


def test_without_fairseq_a_command_that_needs_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(*_: object) -> None:
        raise ModuleNotFoundError("fairseq is not installed here", name="fairseq")

    monkeypatch.setattr(module, "import_module", missing)
    said = "error: fairseq is not installed here; see diet-mt --help\n"
    assert outcome(["average"], capsys) == (2, "", said)


@pytest.mark.parametrize("name", ["", *LIGHT])
def test_help_loads_nothing_heavy(name: str, tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from diet_mt.cli.main import main\n"
        "try:\n"
        f"    main({[*name.split(), '--help']})\n"
        "except SystemExit as stop:\n    assert stop.code == 0\n"
        "print('loaded', [name for name in ('torch', 'fairseq') if name in sys.modules])"
    )
    printed = run_python(code, cwd=tmp_path, PYTHONPATH=ROOT).strip().split("\n")
    assert printed[0].startswith(f"usage: diet-mt {name}")
    assert printed[-1] == "loaded []"


def test_output_that_the_terminal_cannot_show_is_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / os.fsdecode(b"f\xff")
    folder.mkdir()
    rows = folder / "r.jsonl"
    write_text(rows, row(test_set="Grüße", system="mine").to_json())
    written = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", written)
    assert main(["leaderboard", str(rows)]) == 0
    assert main(["leaderboard", str(rows), "--format", "markdown"]) == 0
    written.flush()
    shown = written.buffer.getvalue().decode("ascii")
    assert r"Gr\xfc\xdfe" in shown
    assert "mine" in shown


def test_it_runs_as_a_module(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "diet_mt", "leaderbord"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = "error: unknown command leaderbord; did you mean leaderboard?\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
