"""Rows survive being written and read; bad ones are refused with their place."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from diet_mt.errors import UserError
from diet_mt.records import parse_result, put_result, read_results, sha256, write_text

from .rows import row


def test_a_row_reads_as_it_was_written() -> None:
    # U+2028 ends a line for str.splitlines, not here.
    result = row(test_set="flickr \u2028 2016", system='a "quoted" ü\n name', lenpen=1.0)
    line = result.to_json()
    assert "\n" not in line
    assert parse_result(line) == result


def test_whole_numbers_pass_for_decimal_ones() -> None:
    fields = json.loads(row().to_json())
    assert parse_result(json.dumps({**fields, "bleu": 31})).bleu == 31


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"seed": "1"}, "'seed' is '1', expected int"),
        ({"seed": 1.5}, "'seed' is 1.5"),
        ({"bleu": True}, "'bleu' is True"),
        ({"system": None}, "'system' is None"),
        ({"blue": 30.0}, "unknown field 'blue'"),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, Any], complaint: str) -> None:
    fields = json.loads(row().to_json())
    with pytest.raises(UserError, match=complaint):
        parse_result(json.dumps({**fields, **changes}))


def test_a_missing_field_is_named() -> None:
    fields = json.loads(row().to_json())
    del fields["bleu_signature"]
    with pytest.raises(UserError, match="no field 'bleu_signature'"):
        parse_result(json.dumps(fields))


@pytest.mark.parametrize("second", ["{", "[1]", "31.5"])
def test_a_bad_line_is_placed(tmp_path: Path, second: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(row().to_json() + "\n" + second + "\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"x\.jsonl, line 2: not "):
        read_results(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.jsonl: cannot be read"):
        read_results(tmp_path / "gone.jsonl")


def test_the_same_evaluation_takes_its_own_place(tmp_path: Path) -> None:
    first = row()
    second = row(seed=2, hypotheses="toy.en-de/diet_rel_tiny.2.hyp.txt")
    again = row(bleu=40.0)
    file = put_result(tmp_path / "results", first, "eins\n")
    put_result(tmp_path / "results", second, "zwei\n")
    put_result(tmp_path / "results", again, "drei\n")
    assert file == tmp_path / "results" / "toy.en-de.jsonl"
    assert read_results(file) == [again, second]
    kept = {result.seed: file.parent / result.hypotheses for result in read_results(file)}
    assert kept[1].read_text(encoding="utf-8") == "drei\n"
    assert kept[2].read_text(encoding="utf-8") == "zwei\n"
    assert not list(tmp_path.rglob("*.part"))


def test_rows_written_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    rows = [row(seed=seed, hypotheses=f"toy.en-de/x.{seed}.hyp.txt") for seed in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda result: put_result(tmp_path, result, f"{result.seed}\n"), rows))
    found = read_results(tmp_path / "toy.en-de.jsonl")
    assert sorted(found, key=lambda result: result.seed) == rows


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "a"
    write_text(file, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(file, "new \ud800")  # half of a surrogate pair is no text
    assert file.read_text(encoding="utf-8") == "old"


def test_checksum(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    # FIPS 180-2, appendix B.1.
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert sha256(tmp_path / "a") == expected
