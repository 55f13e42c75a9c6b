"""Pieces for masked language models: cut at words, repeated by language, in stages."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.bert import mlm_text, tokenizer
from diet_mt.bert.mlm_text import (
    copies,
    cut,
    files_of,
    prepare_sentences,
    repeated,
    shares,
    split_lines,
    times,
    write_pieces,
    write_sample,
)
from diet_mt.bert.tokenizer import WORDPIECE
from diet_mt.errors import UserError

from .tokenizers_made import KINDS, write_tokenizer


def begins(piece: str) -> bool:
    return not piece.startswith("##")


@pytest.mark.parametrize(
    ("pieces", "parts"),
    [
        ("", []),
        ("a b c", ["a b c"]),
        ("a b c d", ["a b c", "d"]),
        ("a b ##b c", ["a b ##b", "c"]),
        ("a b c ##c", ["a b", "c ##c"]),
        ("a ##b ##c ##d e", ["a ##b ##c", "##d e"]),  # a word that is longer itself
        ("a b ##b ##b ##b", ["a", "b ##b ##b", "##b"]),
        ("a b c d e f g", ["a b c", "d e f", "g"]),
    ],
)
def test_sentences_are_cut_where_words_begin(pieces: str, parts: list[str]) -> None:
    """At three pieces, by hand."""
    assert cut(pieces.split(), 3, begins) == [part.split() for part in parts]


@pytest.mark.parametrize("kind", KINDS)
def test_no_line_is_too_long_and_nothing_is_lost(tmp_path: Path, kind: str) -> None:
    folder = write_tokenizer(tmp_path / "made", kind)
    made = tokenizer.load(folder)
    lines = ["The old woman reads, because the young man sleeps", "", "the", "\u200b", "漢"]
    found, long, total, unknown = split_lines(lines, folder / kind, 5)
    assert all(len(line.split()) <= 5 for line in found)
    whole = " ".join(found).split()
    assert whole == [piece for line in lines for piece in made.pieces(line)]
    assert found.count("") == 1, "the end of a document, and no other empty line"
    assert (long, total) == (1, len(whole))
    assert unknown == whole.count("<unk>") >= 1


def write(folder: Path, **texts: str) -> Path:
    folder.mkdir()
    for name, text in texts.items():
        path = folder / name.replace("_", ".")
        path.write_text(text, encoding="utf-8", newline="\n")
    return folder


def test_shares_by_hand() -> None:
    """90% and 10%: the square roots are 3 to 1."""
    counts = {"en": 900, "sw": 100}
    assert shares(counts, 0.5) == pytest.approx({"en": 0.75, "sw": 0.25})
    assert shares(counts, 1) == pytest.approx({"en": 0.9, "sw": 0.1})
    assert shares(counts, 0) == pytest.approx({"en": 0.5, "sw": 0.5})


def test_the_most_frequent_language_is_there_once() -> None:
    """900 to 300 is 3 to 1."""
    assert times({"en": 900, "sw": 100}, 0.5) == pytest.approx({"en": 1, "sw": 3})
    assert times({"en": 900}, 0.5) == {"en": 1}


@pytest.mark.parametrize(("count", "wanted"), [(10, 3), (10, 10), (3, 10), (7, 0), (1, 4)])
def test_copies_add_up_and_are_even(count: int, wanted: int) -> None:
    each = [copies(number, count, wanted) for number in range(count)]
    assert sum(each) == wanted
    assert max(each) - min(each) <= 1


def test_documents_are_repeated_evenly(tmp_path: Path) -> None:
    write(tmp_path / "s", train_en="a\nb\n\nc\n\nd\n")
    file = tmp_path / "s" / "train.en"
    assert list(repeated(file, 1)) == ["a", "b", "", "c", "", "d", ""]
    assert list(repeated(file, 2)) == ["a", "b", "", "c", "", "d", ""] * 2
    # Four of three documents: the one in which the fourth falls comes again.
    found = list(repeated(file, 4 / 3))
    assert found == ["a", "b", "", "c", "", "d", "", "d", ""]


def test_a_long_document_is_repeated_in_part(tmp_path: Path) -> None:
    """One of 500 sentences is ten runs of 50: of three tenths more, three are chosen evenly."""
    lines = [f"s{number}" for number in range(500)]
    write(tmp_path / "s", train_en="\n".join(lines) + "\n")
    found = list(repeated(tmp_path / "s" / "train.en", 1.3))
    assert found[:501] == [*lines, ""]
    more = found[501:]
    assert more.count("") == 3, "the runs do not stand together, so each is a document"
    assert len(more) == 3 + 150
    assert [line for line in more if line] == [*lines[150:200], *lines[300:350], *lines[450:500]]
    assert more[-1] == ""


def test_the_sample_is_as_large_as_wanted(tmp_path: Path) -> None:
    """Nine to one sentences become three to one."""
    many = "".join(f"e{n}\n" + "\n" * (n % 4 == 0) for n in range(90))
    folder = write(tmp_path / "s", train_en=many, train_sw="".join(f"s{n}\n" for n in range(10)))
    assert write_sample(folder, tmp_path / "sample", 40, 0.5) == 40
    lines = (tmp_path / "sample").read_text(encoding="utf-8").split("\n")[:-1]
    assert len([line for line in lines if line.startswith("e")]) == 30
    assert [line for line in lines if line.startswith("s")] == [f"s{n}" for n in range(10)]
    assert "" not in lines
    assert write_sample(folder, tmp_path / "sample", 1000, 1) == 100


def test_more_of_a_small_language_in_training_but_not_in_validation(tmp_path: Path) -> None:
    folder = write_tokenizer(tmp_path / "made", WORDPIECE)
    english = "\n".join(["the old woman\n"] * 16)
    texts = {"train_en": english, "train_de": "der\n", "valid_de": "das\n"}
    sentences = write(tmp_path / "s", **texts, valid_en="the\n")
    write_pieces(sentences, tmp_path / "pieces", folder / WORDPIECE, 20, 0.5)
    made = tokenizer.load(folder)
    lines = {
        split: (tmp_path / "pieces" / split).read_text(encoding="utf-8").split("\n")[:-1]
        for split in mlm_text.SPLITS
    }
    count = lines["train"].count
    assert (count(" ".join(made.pieces("the old woman"))), count("")) == (16, 20)
    assert count(" ".join(made.pieces("der"))) == 4  # the square root of 16 more than its share
    assert len(lines["valid"]) == 4


def test_what_is_there_is_not_made_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text"
    text.write_text("One. Two.\n", encoding="utf-8")
    files = {"train": {"en": [text]}, "valid": {"en": [text]}}
    prepare_sentences(files, tmp_path / "out")
    (tmp_path / "out" / "train.en").write_text("kept\n", encoding="utf-8")
    prepare_sentences(files, tmp_path / "out")
    assert (tmp_path / "out" / "train.en").read_text(encoding="utf-8") == "kept\n"
    assert "train.en: done before" in capsys.readouterr().err


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no train.LANGUAGE"):
        files_of(tmp_path, "train")
    folder = write(tmp_path / "s", train_en="a\n")
    with pytest.raises(UserError, match=r"nowhere/spm.model: no model"):
        write_pieces(folder, tmp_path / "out", Path("nowhere/spm.model"), 3, 0.5)
    assert list((tmp_path / "out").iterdir()) == []
