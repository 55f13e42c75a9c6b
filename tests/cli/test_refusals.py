"""Wrong uses of the commands: status 2, one line that names the datum, nothing written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diet_mt.evaluation.hypotheses import Counts, Texts, companions
from diet_mt.evaluation.json_rows import write_rows

from ..evaluation.rows import row, task_row
from ..processes import called

pytestmark = pytest.mark.hostile

ROW, TASK = row().to_json(), task_row().to_json()
# Counts of the row, and the lengths of its test set.
SENTENCES = (
    Counts("d" * 64, "e" * 64, [1, 1], [[1, 1], [0, 0], [0, 0], [0, 0]]),
    Texts("e" * 64, [1, 1], [1, 1]),
)


def changed(**fields: object) -> str:
    """A line of results with other values; None: without the field."""
    values = {**json.loads(ROW), **fields}
    return json.dumps({name: value for name, value in values.items() if value is not None})


CALLS: list[tuple[str, str]] = [
    # Commands, options, values.
    ("leaderbord", "did you mean leaderboard?"),
    ("bench sped", "did you mean bench speed?"),
    ("--hlep", "did you mean --help?"),
    ("leaderboard --directon=en-de", "did you mean --directions?"),
    # Neither cut short nor hidden by what else is missing.
    ("leaderboard --form html", "did you mean --format?"),
    ("leaderboard r.jsonl --systems diet_rell", "did you mean diet_rel?"),
    ("leaderboard r.jsonl --directions de-en", "choose from en-de"),
    ("leaderboard r.jsonl --readme refs.de --out x", "--readme"),
    ("leaderboard r.jsonl --check", "--check"),
    ("compare r.jsonl --systems a b", "unknown system a; choose from diet_rel"),
    ("average --out x.pt", "--last"),
    ("average gone.pt --out x.pt --dry-run", "gone.pt"),
    ("export gone.pt --format onnx --out x", "gone.pt"),
    ("evaluate folder folder --beam 0", "--beam: 0"),
    ("bench speed --checkpoint x.pt", "x.pt"),
    ("bench speed --checkpoint shw=x.pt", "did you mean shaw?"),
    ("bench memory --cases none", "choose from diet_abs, factors"),
    ("answer data x.pt --out o", "--split"),
    ("verify a.json b.json --references g", "answers"),
    ("evaluate folder folder --lenpen 1 --tune-lenpen 0 1", "--tune-lenpen"),
    ("finetune folder x.pt --recipe glue --save-dir d --gpus 2", "--gpus 2"),
    ("figures --out o --data folder", "--data"),
    ("figures --out o --near 40", "--near 40"),
    ("figures --out o --only rnak", "rnak"),
    ("figures --out o", "rank.jsonl"),
    # Files.
    ("leaderboard folder", "folder"),
    ("leaderboard r.jsonl --readme refs.de", "refs.de"),
    ("leaderboard r.jsonl --out folder", "folder"),
    ("compare r.jsonl --systems diet_rel diet_rel --show 1 --references gone.de", "gone.de"),
    ("verify r.jsonl --references folder", "folder"),
    ("verify r.jsonl --references refs.de", "1 of 1 rows"),
    ("verify r.json --references refs.de", "refs.de"),
    ("bench curves folder --out x", "train.log"),
]
# A line of results, the command over it, and the datum; more: tests/evaluation/test_records.py.
ROWS: list[tuple[str, str, str]] = [
    ("", "compare", "r.jsonl"),
    (changed(hypotheses_sha256="0" * 64), "leaderboard", "diet_rel, seed 1"),
    ('{"a":' * 100_000, "compare", "r.jsonl, line 1"),
    ("\xff", "leaderboard", "r.jsonl, line 1"),
    (changed(bleu=float("nan")), "leaderboard", "'bleu' is nan"),
    (changed(system="a\x1b[2Jb"), "leaderboard", "'system'"),
    (changed(hypotheses="../../secret"), "verify --references refs.de", "../../secret"),
    (f"{ROW}\n{ROW}", "leaderboard", "diet_rel_tiny, seed 1, toy test"),
    (TASK.replace('"CoLA"', '"../x"'), "leaderboard", "'../x'"),
    (TASK.replace('"valid"', '"v"'), "leaderboard", "test_LANG"),
]


def with_rows(rows: str, words: str) -> tuple[str, str]:
    name, _, more = words.partition(" ")
    return rows, f"{name} r.jsonl {more}"


CASES = [(ROW, *case) for case in CALLS] + [
    (*with_rows(rows, words), datum) for rows, words, datum in ROWS
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for file, row_ in zip(companions(tmp_path / "r.jsonl"), SENTENCES, strict=True):
        write_rows(file, [row_])
    (tmp_path / "r.json").write_text("{}", encoding="utf-8")
    (tmp_path / "refs.de").write_text("eins\nzwei\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("rows", "words", "datum"), CASES)
def test_a_wrong_use_is_one_line(
    rows: str, words: str, datum: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "r.jsonl").write_text(f"{rows}\n", encoding="utf-8")
    before = sorted(here.rglob("*"))
    assert called(*words.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert datum in error
    assert len(error) < 600
    assert sorted(here.rglob("*")) == before
