"""``diet-mt``: help, listing, completion, and the parser that dataclasses make."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import shtab

from diet_mt.cli import reports, train
from diet_mt.cli.main import COMMANDS, GROUPS, main, tree
from diet_mt.cli.parser import Parser, filled
from diet_mt.evaluation import records
from diet_mt.figures import draw
from diet_mt.models import architectures
from diet_mt.positions import SEGMENT_ENCODINGS
from diet_mt.system.files import write_text
from diet_mt.system.options import Command, Count, Pair, Positive, argument, option

from ..commands.runner import ROOT, run_python
from ..evaluation.rows import put, row
from ..processes import called


@pytest.mark.parametrize("group", ["", *GROUPS])
def test_without_a_command_it_prints_the_help(
    group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [group] if group else []
    assert called(*words, "--help") == 0
    listing = capsys.readouterr().out
    assert listing.startswith("usage: diet-mt")
    for name, (_, summary) in COMMANDS.items():
        is_listed = f"  {name} " in listing and summary in listing
        assert is_listed == (not group or name.split(" ")[0] == group)
    assert called(*words) == 2
    assert capsys.readouterr() == ("", listing)


def test_help_loads_nothing_heavy_and_is_quick(tmp_path: Path) -> None:
    code = (
        "import sys, time\n"
        "began = time.process_time()\n"
        "from diet_mt.cli.main import COMMANDS, listing, parser_of\n"
        "listing()\n"
        "for name in COMMANDS:\n    parser_of(name).format_help()\n"
        "heavy = ('torch', 'fairseq', 'matplotlib', 'sacrebleu')\n"
        "print([name for name in heavy if name in sys.modules], time.process_time() - began)"
    )
    loaded, seconds = run_python(code, cwd=tmp_path, PYTHONPATH=ROOT).rsplit(" ", 1)
    assert loaded == "[]"
    assert float(seconds) < 2  # of all commands together


def test_output_that_the_terminal_cannot_show_is_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / os.fsdecode(b"f\xff")
    folder.mkdir()
    rows = folder / "r.jsonl"
    write_text(tmp_path / "refs.de", "eins\n")
    put(folder, row(test_set="Grüße", system="mine", corpus="r"), ["eins"], tmp_path / "refs.de")
    written = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", written)
    assert main(["leaderboard", str(rows)]) == 0
    assert main(["leaderboard", str(rows), "--format", "markdown"]) == 0
    written.flush()
    shown = written.buffer.getvalue().decode("ascii")
    assert r"Gr\xfc\xdfe" in shown
    assert "mine" in shown


def test_bash_completes_commands_and_values(tmp_path: Path) -> None:
    (tmp_path / "completion").write_text(shtab.complete(tree(), shell="bash"), encoding="utf-8")
    for words, known in (
        ([], {name.split(" ")[0] for name in COMMANDS}),
        (["prepare"], {name.split(" ")[1] for name in COMMANDS if name.startswith("prepare ")}),
        (["leaderboard", "--format"], {"text", "markdown", "html"}),
    ):
        program = f"""
            . {tmp_path}/completion
            COMP_WORDS=(diet-mt {" ".join(words)} '') COMP_CWORD={len(words) + 1}
            _shtab_diet_mt
            echo "${{COMPREPLY[@]}}"
        """
        done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
        assert set(done.stdout.split()) == known


# Choices that are declared apart from their owners, which load torch or fairseq.
TWICE = {
    "figures --only": (reports.FIGURES, draw.FIGURES),
    "pretrain --segments": (train.SEGMENTS, SEGMENT_ENCODINGS),
    "sizes in rows": (records.SIZES, {**architectures.SIZES, **architectures.ROBERTA_SIZES}),
}


@pytest.mark.parametrize(("here", "there"), TWICE.values(), ids=TWICE)
def test_choices_are_those_of_their_owner(here: Collection[str], there: Collection[str]) -> None:
    assert sorted(here) == sorted(there)


@pytest.mark.parametrize(("task", "splits"), [("MNLI", ["valid", "valid1"]), ("QNLI", ["valid"])])
def test_predict_takes_dev_for_every_dev_set(
    task: str, splits: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--split", "dev", "test", "--results", "rows", "--dry-run")
    (tmp_path / "checkpoint.pt").touch()
    assert called("predict", tmp_path / task, tmp_path / "checkpoint.pt", *words) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[:2] for line in lines] == [[task, split] for split in [*splits, "test"]]


@dataclass(frozen=True)
class Inner:
    """Group."""

    size: Positive = option("size", 4)
    name: str = "no option"


@dataclass(frozen=True, kw_only=True)
class Toy(Command):
    """Toy.

    diet-mt toy
    """

    passes_on = True
    defaults = {"size": 6}  # noqa: RUF012
    file: Path = argument("file", metavar="FILE")
    inner: Inner
    loss: float | None = option("loss", None)
    parts: Sequence[Count] = option("parts", (1, 2))
    pairs: Sequence[Pair] = option("pairs", (), repeat=True)
    is_new: bool = option("new", False)
    clean: bool = option("clean", True, negatable=True)


def test_a_dataclass_makes_a_parser_and_is_filled_by_it() -> None:
    parser = Parser("toy", Toy)
    toy = filled(Toy, parser.parse_args(["x"]))
    assert toy == Toy(
        file=Path("x"), inner=Inner(size=6), pairs=[], words=["x"], passed=[], known=toy.known
    )
    assert {"--size", "--loss", "--parts", "--pairs", "--is-new", "--no-clean"} < set(toy.known)
    words = "x --size 2 --loss -1.5 --parts 0 3 --pairs a=b --is-new --lr 3 --pairs c=d --no-clean"
    toy = filled(Toy, parser.parse_args(words.split()))
    assert (toy.inner.size, toy.loss, toy.is_new, toy.clean) == (2, -1.5, True, False)
    assert (toy.parts, toy.pairs, toy.passed) == ([0, 3], [("a", "b"), ("c", "d")], ["--lr", "3"])
    assert "size (default 6)" in parser.format_help()
    assert "parts (default 1 2)" in " ".join(parser.format_help().split())
