"""Public reports of wrong scores, and of text that changes on its way."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.bert.glue import TASKS
from diet_mt.corpora import subwords
from diet_mt.evaluation.scores import scores
from diet_mt.system.errors import UserError

# Ends of lines for str.splitlines and the codecs module, not for a file.
SEPARATORS = ("\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c")


def test_lines_end_at_newlines_alone(tmp_path: Path) -> None:
    """subword-nmt #29: apply-bpe writes more lines than it read.

    subword-nmt #92, #46: a code with such a character makes the file of codes invalid.
    """
    text = tmp_path / "text"
    lines = [f"see{each}n un{each}seen .{each}" for each in SEPARATORS] * 3
    text.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    subwords.learn_bpe([text], tmp_path / "codes", 100)
    subwords.split_file("bpe", tmp_path / "codes", text, tmp_path / "out", workers=1)
    written = (tmp_path / "out").read_text(encoding="utf-8").split("\n")
    assert written.pop() == ""
    assert len(written) == len(lines)
    assert [subwords.join_bpe(line) for line in written] == [line.rstrip() for line in lines]


@pytest.mark.parametrize("space", ["\u00a0", "\u2009", "\u3000"], ids=ascii)
def test_unusual_spaces_inside_words(space: str, tmp_path: Path) -> None:
    """subword-nmt #55: spaces of Unicode are parts of words in one place and separate them in
    another.
    """
    text = tmp_path / "text"
    text.write_text(f"10{space}kg or 10 kg\n" * 5, encoding="utf-8")
    subwords.learn_bpe([text], tmp_path / "codes", 10)
    (actual,) = subwords.split_bpe([f"10{space}kg 10 kg"], tmp_path / "codes")
    assert subwords.join_bpe(actual) == f"10{space}kg 10 kg"
    assert actual.endswith(" 10 kg")


def test_a_continued_subword_at_the_end_of_a_line() -> None:
    """masakhane-web #33: ``@@`` is left over at the end. marian #115: nothing is left."""
    assert subwords.to_text("the well @-@ kno@@", "en", "bpe") == "the well-kno"
    assert subwords.join_bpe("San-Juan-@@") == "San-Juan-"


def test_combining_marks_come_back(tmp_path: Path) -> None:
    """OpenNMT/Tokenizer #57: subwords part a mark from its letter."""
    text = "u\u0307 u\u0307e t\u0307 t\u0307e"
    (tmp_path / "text").write_text(f"{text}\n" * 3, encoding="utf-8")
    subwords.learn_bpe([tmp_path / "text"], tmp_path / "codes", 2)
    (actual,) = subwords.split_bpe([text], tmp_path / "codes")
    assert subwords.to_text(actual, "en", "bpe") == text


@pytest.mark.parametrize(
    ("lang", "text"),
    [
        ("en", '"See what you have done!" she screamed. "I shall melt."'),  # sacremoses #152
        ("fr", "L'amitié nous a fait forts d'esprit"),  # sacremoses #43
        ("en", "John vs. Doe, says vs."),  # sacremoses #97
        ("en", "It's 5 < 6 & 7 > 3 | [x]"),  # sacremoses #27
    ],
)
def test_back_and_forth(lang: str, text: str) -> None:
    assert subwords.detokenize(subwords.tokenize(text, lang), lang) == text


def test_curly_quotation_marks_become_straight() -> None:
    """sacremoses #152."""
    tokens = subwords.tokenize("“See what you have done!” she screamed. “I shall melt.”", "en")
    actual = subwords.detokenize(tokens, "en")
    assert actual == '"See what you have done!" she screamed. "I shall melt."'


def test_empty_references() -> None:
    """sacrebleu #161, espnet #4715: an empty line among the references ends the evaluation."""
    assert scores(["a b c d e", ""], ["a b c d e", ""])["bleu"] == 100
    fields = scores(["a b c d e", "x"], ["a b c d e", ""])
    # 5 of 6 words, and every longer n-gram.
    assert fields["bleu"] == pytest.approx(100 * (5 / 6) ** (1 / 4), abs=1e-3)
    assert fields["length_ratio"] == 1.2


def test_nothing_but_empty_lines() -> None:
    """sacrebleu #225: half of a test set is empty."""
    fields = scores([""], ["a b c d"])
    assert (fields["bleu"], fields["length_ratio"]) == (0, 0)
    assert scores([""], [""])["bleu"] == 0


def test_fewer_hypotheses_than_references() -> None:
    """sacrebleu #160: 2134 hypotheses of 3004 references."""
    with pytest.raises(UserError, match=r"2 .*3 "):
        scores(["a", "b"], ["a", "b", "c"])


def test_metrics_of_glue() -> None:
    """fairseq #1561: which metric the scores of MRPC, QQP and STS-B are."""
    metrics = {name: set(task.metrics) for name, task in TASKS.items()}
    assert metrics["MRPC"] == metrics["QQP"] == {"accuracy", "f1"}
    assert metrics["STS-B"] == {"pearson", "spearman"}
    assert metrics["CoLA"] >= {"matthews"}
