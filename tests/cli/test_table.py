"""Tables say what the rows say, and the README's section is theirs."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from diet_mt.cli import table
from diet_mt.cli.readme import with_section
from diet_mt.errors import UserError
from diet_mt.records import Result, put_result

from .rows import row, seeds_of

ROOT = Path(__file__).resolve().parent.parent.parent
README = "before\n\n<!-- results:begin -->\nold\n<!-- results:end -->\n\nafter \\1\n"


@pytest.fixture
def results() -> list[Result]:
    return [
        *seeds_of("sinusoidal", {1: 33.0, 3: 35.0, 2: 34.0}),
        *seeds_of("diet_rel", {2: 35.5, 1: 34.0}),
        *seeds_of("none", {1: 27.0}),
    ]


def test_means_seeds_and_differences(results: list[Result]) -> None:
    (group,) = table.group(results)
    assert [row.name for row in group.rows] == ["diet_rel_tiny", "sinusoidal_tiny", "none_tiny"]
    assert [row.bleu for row in group.rows] == [34.75, 34.0, 27.0]
    assert [group.gain(row) for row in group.rows] == [0.75, 0.0, -7.0]
    lines = table.markdown([group]).split("\n")
    assert "| diet_rel_tiny | 34.75 | +0.75 | 55.50 | 1: 34.00, 2: 35.50 | 1,234,567 |" in lines
    assert (
        "| sinusoidal_tiny | 34.00 | 0 | 55.50 | 1: 33.00, 2: 34.00, 3: 35.00 | 1,234,567 |"
        in lines
    )
    assert "| none_tiny | 27.00 | -7.00 | 55.50 | 1: 27.00 | 1,234,567 |" in lines


def test_without_a_baseline_there_is_no_difference(results: list[Result]) -> None:
    (group,) = table.group(result for result in results if result.system != table.BASELINE)
    assert "| none_tiny | 27.00 |  | 55.50 |" in table.markdown([group])


def test_only_what_is_alike_is_compared(results: list[Result]) -> None:
    others = [
        row(test_set="another test"),
        row(beam=5, hypotheses="b"),
        row(lenpen=1.0, hypotheses="l"),
        row(arch="diet_rel_base", hypotheses="s"),
        row(direction="de-en"),
        row(checkpoint="averaged.pt", hypotheses="a"),
    ]
    groups = table.group([*results, *others])
    assert [len(group.rows) for group in groups] == [3, 1, 1, 1, 1, 1, 1]
    assert all(group.gain(group.rows[0]) is None for group in groups[1:])


def test_an_own_name_is_a_row_of_its_own(results: list[Result]) -> None:
    own = row(system="diet_rel+layer-wise", hypotheses="own")
    (group,) = table.group([*results, own])
    assert "diet_rel+layer-wise (diet_rel_tiny)" in [row.name for row in group.rows]


def test_two_results_for_one_place_are_refused(results: list[Result]) -> None:
    with pytest.raises(UserError, match="two results of diet_rel_tiny, seed 1, toy test"):
        table.group([*results, results[-2]])


def test_commands_stand_once_whatever_the_seed(results: list[Result]) -> None:
    text = table.markdown(table.group(results))
    commands = [line for line in text.split("\n") if line.startswith("fairseq-")]
    assert commands == [
        "fairseq-train data/bin --arch diet_rel_tiny --seed SEED --save-dir CHECKPOINTS",
        "fairseq-train data/bin --arch sinusoidal_tiny --seed SEED --save-dir CHECKPOINTS",
        "fairseq-train data/bin --arch none_tiny --seed SEED --save-dir CHECKPOINTS",
        "fairseq-generate data/bin --path CHECKPOINTS/checkpoint_best.pt",
    ]


@pytest.mark.parametrize("render", [table.markdown, table.plain])
def test_scores_come_with_their_signatures(results: list[Result], render: object) -> None:
    text = render(table.group(results))  # type: ignore[operator]
    assert text.count("nrefs:1|tok:13a|version:2.6.0") == 1
    assert text.count("nrefs:1|nc:6|version:2.6.0") == 1


def test_plain_columns_line_up(results: list[Result]) -> None:
    lines = table.plain(table.group(results)).split("\n")[1:5]
    assert len({len(line) for line in lines}) == 1
    assert len({line.index("55.50") for line in lines[1:]}) == 1


def test_only_the_section_changes() -> None:
    new = with_section(README, "results", "a\\1 table\n")
    assert new == (
        "before\n\n<!-- results:begin -->\n\na\\1 table\n\n<!-- results:end -->\n\nafter \\1\n"
    )
    assert with_section(new, "results", "a\\1 table\n") == new


@pytest.mark.parametrize(
    "text",
    [
        "no markers\n",
        "<!-- results:begin -->\n",
        "<!-- results:end -->\n<!-- results:begin -->\n",
        README + README,
        "text <!-- results:begin -->\n<!-- results:end -->\n",
    ],
)
def test_unclear_markers_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="needs the lines"):
        with_section(text, "results", "table")


@pytest.fixture
def folder(tmp_path: Path, results: list[Result]) -> Path:
    """A results folder and a README."""
    for result in results:
        text = f"{result.seed}\n"
        digest = hashlib.sha256(text.encode()).hexdigest()
        changed = {**vars(result), "hypotheses_sha256": digest}
        put_result(tmp_path, Result(**changed), text)
    (tmp_path / "README.md").write_text(README, encoding="utf-8")
    return tmp_path


def run(folder: Path, *options: str) -> int:
    return table.main([str(folder / "toy.en-de.jsonl"), *options])


def test_the_readme_is_rewritten_and_checked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = folder / "README.md"
    options = ("--readme", str(readme))
    assert run(folder, *options, "--check") == 2
    assert "section 'results' is not made from these files" in capsys.readouterr().err
    assert readme.read_text(encoding="utf-8") == README
    assert run(folder, *options) == 0
    assert "| diet_rel_tiny | 34.75 |" in readme.read_text(encoding="utf-8")
    assert run(folder, *options, "--check") == 0


@pytest.mark.parametrize(
    ("content", "complaint"), [("other\n", "changed since it was scored"), (None, "missing")]
)
def test_the_check_looks_at_the_hypotheses(
    folder: Path, capsys: pytest.CaptureFixture[str], content: str | None, complaint: str
) -> None:
    options = ("--readme", str(folder / "README.md"))
    assert run(folder, *options) == 0
    file = folder / "toy.en-de" / "none_tiny.1.hyp.txt"
    file.unlink()
    if content is not None:
        file.write_text(content, encoding="utf-8")
    assert run(folder, *options, "--check") == 2
    error = capsys.readouterr().err
    assert f"none_tiny.1.hyp.txt: {complaint}" in error
    assert error.count("\n") == 1


def test_plain_text_on_request(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "--plain") == 0
    out = capsys.readouterr().out
    assert out.startswith("toy test, en-de, 2 sentences, beam 10, length penalty 0.6\n")
    assert "|" not in out.split("\n")[1]


OWN = sorted((ROOT / "results").glob("*.jsonl"))


def test_the_projects_own_table_is_that_of_its_results() -> None:
    assert OWN
    files = [str(path) for path in OWN]
    assert table.main([*files, "--readme", str(ROOT / "README.md"), "--check"]) == 0
