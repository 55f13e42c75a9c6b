"""Wrong uses of the commands that read results, and of those over checkpoints: one line each.

The status is 2, the line says what is wrong and where, nothing is written and no traceback shown.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..calling import called
from ..evaluation.rows import row
from ..evaluation.task_rows import task_row

pytestmark = pytest.mark.hostile

ROW, TASK = row().to_json(), task_row().to_json()
COMPARE = "compare r.jsonl"


def changed(**fields: object) -> str:
    """A line of results with other values; None: without the field."""
    values = {**json.loads(ROW), **fields}
    return json.dumps({name: value for name, value in values.items() if value is not None})


# What r.jsonl holds, the command, and a part of the line that it must say.
CASES: list[tuple[str, str, str]] = [
    # Commands, options, values.
    (ROW, "completion fish", "argument shell: unknown value fish; choose from bash, zsh"),
    (ROW, "leaderboard --reademe x.md", "unknown option --reademe; did you mean --readme?"),
    (
        ROW,
        "leaderboard r.jsonl --systems diet_rell",
        "unknown system diet_rell; did you mean diet_rel?",
    ),
    (ROW, "leaderboard r.jsonl --directions de-en", "choose from en-de"),
    (ROW, "leaderboard r.jsonl --test-sets x", "choose from toy test"),
    (ROW, "leaderboard r.jsonl --brief --format html", "--brief: only with --format"),
    (ROW, "leaderboard r.jsonl --brief --verbose", "--verbose: only with --format text"),
    (ROW, f"{COMPARE} --systems a b", "unknown system a; choose from diet_rel"),
    (ROW, "average --out x.pt", "give either checkpoints or --last N --dir FOLDER"),
    (
        ROW,
        "average --last 0 --dir . --out x.pt",
        "argument --last: 0: expected a whole number of at least 1",
    ),
    (ROW, "average --last two --dir . --out x.pt", "two: expected a whole number"),
    (ROW, "average --last 2 --dir . --out x.pt", ".: 0 numbered checkpoints, 2 to be averaged"),
    *(
        (ROW, f"{words} --dry-run", "gone.pt: no such checkpoint")
        for words in (
            "average gone.pt --out x.pt",
            "parity gone.pt",
            "predict folder gone.pt --task CoLA",
            "answer folder gone.pt --out o --split valid",
        )
    ),
    (ROW, "average folder --out x.pt", "folder: no such checkpoint"),
    (ROW, "parity r.jsonl", "r.jsonl: cut short or not a checkpoint"),
    (ROW, "average r.jsonl --out x.pt", "r.jsonl: cut short or not a checkpoint"),
    (ROW, "leaderboard latin", "latin, line 2: not valid UTF-8"),
    (ROW, "parity", "the following arguments are required: CHECKPOINT"),
    (ROW, "parity --beam 0 x.pt", "argument --beam: 0: expected a whole number of at least 1"),
    (ROW, "bench speed --device gpu", "argument --device: unknown value gpu; did you mean cpu?"),
    (ROW, "bench speed --systems diet-rel", "unknown system diet-rel; did you mean diet_rel?"),
    (ROW, "bench speed --size tny", "unknown size tny; did you mean tiny?"),
    (ROW, "bench speed --checkpoint x.pt", "x.pt: give name=value"),
    (ROW, "bench speed --checkpoint shw=x.pt", "unknown system shw; did you mean shaw?"),
    (ROW, "bench memory --cases none", "unknown case none; choose from diet_abs, factors"),
    (ROW, "bench encoder --encodings alibbi", "unknown encoding alibbi; did you mean alibi?"),
    (ROW, "predict data/COLA x.pt", "COLA"),
    (
        ROW,
        "predict data/glue x.pt --batch-size -1",
        "argument --batch-size: -1: expected a whole number",
    ),
    (ROW, "answer data x.pt --out o", "one of the arguments --split --file is required"),
    (
        ROW,
        "answer data x.pt --out o --split valid --n-best 0",
        "0: expected a whole number of at least 1",
    ),
    (ROW, "verify a.json b.json --references g", "answers: give one FILE"),
    (ROW, "verify r.jsonl --references refs.de --language de", "only for answers"),
    # Files.
    (ROW, "leaderboard folder", "folder: cannot be read (Is a directory)"),
    (ROW, "leaderboard r.jsonl --readme refs.de", "refs.de: needs one line"),
    (ROW, "leaderboard r.jsonl --out folder", "--out folder: a folder"),
    (ROW, "average r.jsonl --out folder", "--out folder: a folder"),
    (ROW, "leaderboard r.jsonl --out refs.de/x", "refs.de: the folder cannot be made"),
    (ROW, "compare r.jsonl --references gone.de", "gone.de: "),
    (ROW, "verify r.jsonl --references folder", "folder: "),
    (ROW, "verify r.jsonl --references refs.de", "1 of 1 rows differ, or cannot be scored again"),
    (ROW, "verify r.json --references refs.de", "refs.de: "),
    (ROW, "verify r.json --references gone.json", "error: gone.json: cannot be read (No such"),
    (ROW, "bench curves folder --out x", "train.log: no such file"),
    (ROW, "bench curves r.jsonl --out x", "r.jsonl, line 1: no field"),
    # What a line of results holds.
    ("", COMPARE, "r.jsonl: no results"),
    (
        f"{ROW}\n{changed(system='mine', hypotheses='toy.en-de/m.txt')}",
        f"{COMPARE} --references refs.de",
        "none of the --references are those of",
    ),
    ("{", "leaderboard r.jsonl", "r.jsonl, line 1: not JSON"),
    ("[1]", "leaderboard r.jsonl", "r.jsonl, line 1: not a JSON object"),
    ("[" * 100_000, "leaderboard r.jsonl", "r.jsonl, line 1: not JSON"),
    ('{"a":' * 100_000, COMPARE, "r.jsonl, line 1: not JSON"),
    ("\xff", "leaderboard r.jsonl", "r.jsonl, line 1: not JSON"),
    (changed(bleu="30"), "leaderboard r.jsonl", "field 'bleu' is '30', expected float"),
    (changed(bleu=None), "leaderboard r.jsonl", "no field 'bleu'"),
    (changed(bleu=float("nan")), "leaderboard r.jsonl", "'bleu' is nan, expected a finite number"),
    (changed(seed=10**400), "leaderboard r.jsonl", "expected a finite number"),
    (changed(beam=-1), "leaderboard r.jsonl", "field 'beam' is -1, expected 0 or more"),
    (changed(blue=1), "leaderboard r.jsonl", "unknown field 'blue'"),
    (changed(system="a\x1b[2Jb"), "leaderboard r.jsonl", "without control characters"),
    (changed(training="--lr 1"), "leaderboard r.jsonl", "field 'training' is '--lr 1'"),
    (changed(hypotheses="../../secret"), "verify r.jsonl --references refs.de", "within the resu"),
    (changed(hypotheses="/etc/passwd"), COMPARE, "'/etc/passwd', expected a path within"),
    (changed(corpus="../x"), "leaderboard r.jsonl", "field 'corpus' is '../x', expected the name"),
    (f"{ROW}\n{ROW}", "leaderboard r.jsonl", "two results of diet_rel_tiny, seed 1, toy test"),
    (TASK.replace('"CoLA"', '"../x"'), "leaderboard r.jsonl", "task '../x': give letters, digits"),
    (TASK.replace("30.5", '"x"'), "leaderboard r.jsonl", "field 'metrics' is "),
    (TASK.replace('"valid"', '"v"'), "leaderboard r.jsonl", "no split of these results"),
]


@pytest.mark.parametrize(("rows", "words", "said"), CASES)
def test_a_wrong_use_is_one_line(
    rows: str,
    words: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "r.jsonl").write_text(f"{rows}\n", encoding="utf-8")
    (tmp_path / "r.json").write_text("{}", encoding="utf-8")
    (tmp_path / "latin").write_bytes(f"{ROW}\nM\xe4nner\n".encode("latin-1"))
    (tmp_path / "refs.de").write_text("eins\nzwei\n", encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    assert called(*words.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert said in error
    assert len(error) < 600
    assert sorted(tmp_path.rglob("*")) == before
