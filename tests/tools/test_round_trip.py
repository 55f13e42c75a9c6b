"""The report on gold answers and their pieces, on made-up questions."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.bert.questions.squad import Answer, Question
from diet_mt.bert.tokenizer import Span, Tokenizer
from tools.round_trip import main, round_trip

from ..bert.questions.made_up import article, coloured, entry, write_squad, write_vocabulary


class Halves(Tokenizer):
    """Pieces of two characters, one after the other, white space left out."""

    def spans(self, text: str) -> list[Span]:
        found = []
        for begin in range(0, len(text), 2):
            if text[begin : begin + 2].strip():
                found.append((text[begin : begin + 2], begin, min(begin + 2, len(text))))
        return found

    def text(self, pieces: list[str]) -> str:
        return "".join(pieces)

    def symbols(self) -> list[str]:
        return []

    def begins_word(self, piece: str) -> bool:
        return True


@pytest.mark.parametrize(
    ("gold", "start", "found", "normalised", "cause"),
    [
        ("ab", 0, None, True, ""),
        ("b", 1, "ab", False, "begins inside the piece 'ab' ('ab')"),
        ("cd,", 2, "cd,e", False, "ends inside the piece ',e' (',e')"),
        ("cd", 2, None, True, ""),
        ("f", 6, "f.", True, "ends inside the piece 'f.' ('f.')"),
        ("e", 5, ",e", True, "begins inside the piece ',e' (',e')"),
    ],
)
def test_what_comes_back(
    gold: str, start: int, found: str | None, normalised: bool, cause: str
) -> None:
    context = "abcd,ef."
    assert context[start : start + len(gold)] == gold
    asked = Question("q", "?", context, (Answer(gold, start),))
    count = round_trip([asked], "halves", "file", Halves())
    assert count.answers == 1
    if found is None:
        assert (count.misses, count.same, count.same_normalised) == ([], 1, 1)
    else:
        (miss,) = count.misses
        assert (miss.found, miss.normalised, miss.cause) == (found, normalised, cause)
        assert (count.same, count.same_normalised) == (0, int(normalised))


def test_white_space_of_a_gold_answer_is_no_piece() -> None:
    asked = Question("q", "?", "ab cd", (Answer("ab ", 0),))
    (miss,) = round_trip([asked], "halves", "file", Halves()).misses
    assert (miss.found, miss.normalised) == ("ab", True)
    assert miss.cause == "white space around the gold answer"


def test_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vocab = write_vocabulary(tmp_path / "vocab")
    context = "the old women read"
    within = write_squad(tmp_path / "x.json", article(context, entry("x", "?", context, "ld wome")))
    files = [str(coloured(tmp_path / "q.json", 9, seed=1)), str(within)]
    out = tmp_path / "new" / "report.md"
    given = ["--vocab", f"toy={vocab}", "--out", str(out), *files]
    assert main(given) == 0
    assert "q.json\ttoy\t9\t100.00% normalized" in capsys.readouterr().out
    text = out.read_text(encoding="utf-8")
    assert "| q.json | toy | 9 | 100.00% | 100.00% | 100.00% |" in text
    assert str(tmp_path) not in text
    rows = (out.parent / "report.misses.tsv").read_text(encoding="utf-8").split("\n")[:-1]
    assert rows[0].split("\t")[0] == "tokenizer"
    for row in rows[1:]:
        assert row.split("\t")[:4] == ["toy", "x.json", "x", "ld wome"]
        assert "inside the piece" in row


def test_wrong_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = coloured(tmp_path / "q.json", 2, seed=1)
    out = ["--out", str(tmp_path / "r.md")]
    assert main([*out, "--vocab", "folder", str(file)]) == 2
    assert "--vocab folder: expected NAME=FOLDER" in capsys.readouterr().err
    bare = write_squad(tmp_path / "bare.json", article("one", {"id": "x", "question": "?"}))
    assert main([*out, str(bare)]) == 2
    assert "bare.json: no gold answers" in capsys.readouterr().err
    assert not (tmp_path / "r.md").exists()
