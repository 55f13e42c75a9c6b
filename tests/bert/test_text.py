"""Paragraphs become sentences, documents stay apart, and pieces are cut and repeated."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from diet_mt.bert import tokenizer
from diet_mt.bert.mlm import (
    SPLITS,
    copies,
    cut,
    inputs,
    read_documents,
    repeated,
    shares,
    split_lines,
    times,
    write_pieces,
    write_sample,
    write_sentences,
)
from diet_mt.bert.tokenizer import WORDPIECE
from diet_mt.system.errors import UserError

from ..prepare.running import lines_of
from .made import KINDS, write_tokenizer

ENGLISH = "Mr. Smith met Dr. Jones at 3.5 km. “Who is it?” he asked. Nobody answered … It was late!"
ENGLISH_SENTENCES = [
    "Mr. Smith met Dr. Jones at 3.5 km.",
    "“Who is it?” he asked.",
    "Nobody answered … It was late!",
]
CZECH = "Pan dr. Novák přišel 5. ledna. Řekl: „Dobrý den!“ Odešel."
CZECH_SENTENCES = ["Pan dr. Novák přišel 5. ledna.", "Řekl: „Dobrý den!“", "Odešel."]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def sentences_of(path: Path, text: str, language: str, workers: int = 1) -> list[str]:
    out = path / f"out{workers}.{language}"
    write_sentences([write(path / "text", text)], out, language, workers)
    return lines_of(out)


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", ENGLISH, ENGLISH_SENTENCES),
        ("cs", CZECH, CZECH_SENTENCES),
        ("de", "Am 5. Januar kam Dr. Müller z. B. heim. Na so was!",
         ["Am 5. Januar kam Dr. Müller z. B. heim.", "Na so was!"]),
        ("zh", "你好。我是谁？他走了。", ["你好。", "我是谁？", "他走了。"]),
        ("en", "\ufeffOne\u0085 line.\r\nTwo\u200b  words.", ["One… line.", "Two words."]),
    ],
)  # fmt: skip
def test_sentences(tmp_path: Path, language: str, text: str, expected: list[str]) -> None:
    assert sentences_of(tmp_path, text + "\n", language) == expected


def test_documents_are_one_empty_line_apart(tmp_path: Path) -> None:
    """However many empty lines there are in the text, and at the ends of files, too."""
    one = write(tmp_path / "one", "\n\nFirst. Second.\nThird.\n\n \t\n\u2028\nFourth.\n")
    two = tmp_path / "two.gz"
    two.write_bytes(gzip.compress(b"Fifth. Sixth.\n\nSeventh.\n\n"))
    write_sentences([one, two], tmp_path / "out", "en")
    assert (tmp_path / "out").read_text(encoding="utf-8") == (
        "First.\nSecond.\nThird.\n\nFourth.\n\nFifth.\nSixth.\n\nSeventh.\n"
    )
    assert list(read_documents(tmp_path / "out"))[-2:] == ["Seventh.", ""]


def test_all_cores_make_the_same_file(tmp_path: Path) -> None:
    """From more paragraphs than a worker is given at a time."""
    text = "".join(f"{ENGLISH} {n}.\n" + "\n" * (n % 7 == 0) for n in range(700))
    one, three = (sentences_of(tmp_path, text, "en", workers) for workers in (1, 3))
    assert one == three
    assert one.count("") == 100
    assert "".join(one).replace(" ", "") == text.replace(" ", "").replace("\n", "")


def test_files_and_their_languages(tmp_path: Path) -> None:
    for name in ("b.gz", "a.gz", "c.txt"):
        (tmp_path / name).touch()
    words = [f"{tmp_path}/*.gz", f"cs:{tmp_path}/c.txt", f"zh-hans:{tmp_path}/a.gz"]
    assert inputs(words, "de") == {
        "de": [tmp_path / "a.gz", tmp_path / "b.gz"],
        "cs": [tmp_path / "c.txt"],
        "zh-hans": [tmp_path / "a.gz"],
    }
    with pytest.raises(UserError, match=r"none.txt"):
        inputs([f"en:{tmp_path}/none.txt"], "de")


@pytest.mark.parametrize(
    ("pieces", "parts"),
    [
        ("", []),
        ("a b c d", ["a b c", "d"]),
        ("a b ##b c", ["a b ##b", "c"]),
        ("a b c ##c", ["a b", "c ##c"]),
        ("a ##b ##c ##d e", ["a ##b ##c", "##d e"]),  # a word that is longer itself
        ("a b ##b ##b ##b", ["a", "b ##b ##b", "##b"]),
    ],
)
def test_sentences_are_cut_where_words_begin(pieces: str, parts: list[str]) -> None:
    """At three pieces, by hand."""
    actual = cut(pieces.split(), 3, lambda piece: not piece.startswith("##"))
    assert actual == [part.split() for part in parts]


@pytest.mark.parametrize("kind", KINDS)
def test_no_line_is_too_long_and_nothing_is_lost(tmp_path: Path, kind: str) -> None:
    folder = write_tokenizer(tmp_path / "made", kind)
    made = tokenizer.load(folder)
    lines = ["The old woman reads, because the young man sleeps", "", "the", "\u200b", "漢"]
    split, long, total, unknown = split_lines(lines, folder / kind, 5)
    assert all(len(line.split()) <= 5 for line in split)
    whole = " ".join(split).split()
    assert whole == [piece for line in lines for piece in made.pieces(line)]
    assert split.count("") == 1, "the end of a document, and no other empty line"
    assert (long, total) == (1, len(whole))
    assert unknown == whole.count("<unk>") >= 1


def test_shares_by_hand() -> None:
    """90% and 10%: the square roots are 3 to 1."""
    counts = {"en": 900, "sw": 100}
    assert shares(counts, 0.5) == pytest.approx({"en": 0.75, "sw": 0.25})
    assert shares(counts, 1) == pytest.approx({"en": 0.9, "sw": 0.1})
    assert shares(counts, 0) == pytest.approx({"en": 0.5, "sw": 0.5})
    # 900 to 300 is 3 to 1.
    assert times(counts, 0.5) == pytest.approx({"en": 1, "sw": 3})
    assert times({"en": 900}, 0.5) == {"en": 1}
    for count, wanted in ((10, 3), (10, 10), (3, 10), (7, 0), (1, 4)):
        each = [copies(number, count, wanted) for number in range(count)]
        assert sum(each) == wanted
        assert max(each) - min(each) <= 1


def test_documents_are_repeated_evenly(tmp_path: Path) -> None:
    file = write(tmp_path / "train.en", "a\nb\n\nc\n\nd\n")
    assert list(repeated(file, 1)) == ["a", "b", "", "c", "", "d", ""]
    assert list(repeated(file, 2)) == ["a", "b", "", "c", "", "d", ""] * 2
    # Four of three documents: the one in which the fourth falls comes again.
    assert list(repeated(file, 4 / 3)) == ["a", "b", "", "c", "", "d", "", "d", ""]
    # One of 500 sentences is ten runs of 50: of three tenths more, three are chosen evenly.
    lines = [f"s{number}" for number in range(500)]
    actual = list(repeated(write(file, "\n".join(lines) + "\n"), 1.3))
    assert actual[:501] == [*lines, ""]
    more = actual[501:]
    assert more.count("") == 3, "the runs are not adjacent, so each is a document"
    assert [line for line in more if line] == [*lines[150:200], *lines[300:350], *lines[450:500]]
    assert more[-1] == ""


def test_the_sample_is_as_large_as_wanted(tmp_path: Path) -> None:
    """Nine to one sentences become three to one."""
    write(tmp_path / "train.en", "".join(f"e{n}\n" + "\n" * (n % 4 == 0) for n in range(90)))
    write(tmp_path / "train.sw", "".join(f"s{n}\n" for n in range(10)))
    assert write_sample(tmp_path, tmp_path / "sample", 40, 0.5) == 40
    lines = lines_of(tmp_path / "sample")
    assert len([line for line in lines if line.startswith("e")]) == 30
    assert [line for line in lines if line.startswith("s")] == [f"s{n}" for n in range(10)]
    assert "" not in lines
    assert write_sample(tmp_path, tmp_path / "sample", 1000, 1) == 100


def test_a_small_language_is_repeated_in_training_but_not_in_validation(tmp_path: Path) -> None:
    folder = write_tokenizer(tmp_path / "made", WORDPIECE)
    write(tmp_path / "train.en", "\n".join(["the old woman\n"] * 16))
    for name, text in (("train.de", "der\n"), ("valid.de", "das\n"), ("valid.en", "the\n")):
        write(tmp_path / name, text)
    write_pieces(tmp_path, tmp_path / "pieces", folder / WORDPIECE, 20, 0.5)
    made = tokenizer.load(folder)
    lines = {split: lines_of(tmp_path / "pieces" / split) for split in SPLITS}
    count = lines["train"].count
    assert (count(" ".join(made.pieces("the old woman"))), count("")) == (16, 20)
    assert count(" ".join(made.pieces("der"))) == 4  # the square root of 16 more than its share
    assert len(lines["valid"]) == 4
