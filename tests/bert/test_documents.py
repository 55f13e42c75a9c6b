"""Paragraphs become sentences, and documents stay apart."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from diet_mt.bert.documents import inputs, need_text, read_documents, write_sentences
from diet_mt.errors import UserError

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
    source = write(path / "text", text)
    write_sentences([source], path / f"out.{language}", language, workers)
    return (path / f"out.{language}").read_text(encoding="utf-8").split("\n")[:-1]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", ENGLISH, ENGLISH_SENTENCES),
        ("cs", CZECH, CZECH_SENTENCES),
        ("de", "Am 5. Januar kam Dr. Müller z. B. heim. Na so was!",
         ["Am 5. Januar kam Dr. Müller z. B. heim.", "Na so was!"]),
        ("zh", "你好。我是谁？他走了。", ["你好。", "我是谁？", "他走了。"]),
    ],
)  # fmt: skip
def test_sentences_of_several_languages(
    tmp_path: Path, language: str, text: str, expected: list[str]
) -> None:
    assert sentences_of(tmp_path, text + "\n", language) == expected


@pytest.mark.parametrize("workers", [1, 2])
def test_documents_are_one_empty_line_apart(tmp_path: Path, workers: int) -> None:
    """However many there are in the text, and at the ends of files, too."""
    one = write(tmp_path / "one", "\n\nFirst. Second.\nThird.\n\n \t\n\u2028\nFourth.\n")
    two = tmp_path / "two.gz"
    two.write_bytes(gzip.compress(b"Fifth. Sixth.\n\nSeventh.\n\n"))
    write_sentences([one, two], tmp_path / "out", "en", workers)
    assert (tmp_path / "out").read_text(encoding="utf-8") == (
        "First.\nSecond.\nThird.\n\nFourth.\n\nFifth.\nSixth.\n\nSeventh.\n"
    )
    assert list(read_documents(tmp_path / "out"))[-2:] == ["Seventh.", ""]


def test_all_cores_make_the_same_file(tmp_path: Path) -> None:
    """Of more paragraphs than a worker is given at a time."""
    text = "".join(f"{ENGLISH} {n}.\n" + "\n" * (n % 7 == 0) for n in range(700))
    made = []
    for workers in (1, 3):
        (tmp_path / str(workers)).mkdir()
        made.append(sentences_of(tmp_path / str(workers), text, "en", workers))
    assert made[0] == made[1]
    assert made[0].count("") == 100
    letters = "".join(made[0]).replace(" ", "")
    assert letters == text.replace(" ", "").replace("\n", "")


def test_lines_are_tidied_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "\ufeffOne\u0085 line.\r\nTwo\u200b  words."
    assert sentences_of(tmp_path, text, "en") == ["One… line.", "Two words."]
    said = capsys.readouterr().err
    assert "out.en: 1 documents, 2 sentences" in said
    assert "1 Windows line ends" in said
    assert "1 byte order marks" in said


def test_files_and_their_languages(tmp_path: Path) -> None:
    for name in ("b.gz", "a.gz", "c.txt"):
        (tmp_path / name).touch()
    words = [f"{tmp_path}/*.gz", f"cs:{tmp_path}/c.txt", f"zh-hans:{tmp_path}/a.gz"]
    assert inputs(words, "de") == {
        "de": [tmp_path / "a.gz", tmp_path / "b.gz"],
        "cs": [tmp_path / "c.txt"],
        "zh-hans": [tmp_path / "a.gz"],
    }
    with pytest.raises(UserError, match=r"none.txt: no such file; give FILE or LANGUAGE:FILE"):
        inputs([f"en:{tmp_path}/none.txt"], "de")


def test_text_that_is_none(tmp_path: Path) -> None:
    empty, text = write(tmp_path / "empty", "\n \u200b\n"), write(tmp_path / "text", "One.\n")
    with pytest.raises(UserError, match=r"train\.en: its files hold no text"):
        need_text([empty, empty], "train.en", whole=True)
    need_text([empty, text], "train.en", whole=True)
    (tmp_path / "latin1").write_bytes("Größe\n".encode("latin-1"))
    with pytest.raises(UserError, match=r"latin1, line 1: not valid UTF-8 \(byte 0xf6"):
        need_text([text, tmp_path / "latin1"], "train.en", whole=True)
    need_text([text, tmp_path / "latin1"], "train.en", whole=False)


# Documents of each file, as the README of the real data counts them.
REAL = {
    "en/wikitext-2-raw.valid": 60,
    "en/wikitext-2-raw.test": 62,
    "en/state_union": 65,
    "en/gutenberg": 296,
    "de/eltec.train": 161,
    "de/eltec.valid": 2,
    "cs/eltec.train": 285,
    "cs/eltec.valid": 1,
}


@pytest.mark.skipif(
    "DIET_MT_DATA" not in os.environ, reason="DIET_MT_DATA, the folder of the real data, is not set"
)
@pytest.mark.parametrize("name", REAL)
def test_real_documents(tmp_path: Path, name: str) -> None:
    file = Path(os.environ["DIET_MT_DATA"]) / "mono" / f"{name}.txt.gz"
    write_sentences([file], tmp_path / "out", name[:2])
    lines = (tmp_path / "out").read_text(encoding="utf-8").split("\n")[:-1]
    assert lines.count("") + 1 == REAL[name]
    given = gzip.decompress(file.read_bytes()).decode("utf-8")
    assert "".join("".join(lines).split()) == "".join(given.split()), "all of it, in its order"
