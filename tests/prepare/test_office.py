"""LibreOffice's texts and the mixed corpus, on messages and sentences of our own."""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path

import pytest
import yaml

from diet_mt.corpora import download, office
from diet_mt.errors import UserError

from ..corpora.server import manifest
from .running import SMALL, only_error, prepare, stages_of

ENTRY = 'msgctxt "ID"\nmsgid "{}"\nmsgstr "{}"\n\n'
ARCHIVE = "translations.tar.xz"
HEADER = 'msgid ""\nmsgstr ""\n"Language: de\\n"\n\n'


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ('msgid ""\n"See the <b>~first</b> "\n"page .\\n"', "See the first page."),
        ('msgid "a\\"b\\" &amp; <c d=\\"e\\">f</c>\\\\nz"', 'a"b" &amp; f z'),
        ('msgid "2 < 3 <> 4 (\\tx )"', "2 < 3 4 ( x)"),
    ],
    ids=["continued", "escapes", "no tags"],
)
def test_a_message_as_plain_text(text: str, plain: str) -> None:
    content = f'{HEADER}#. note\n#: file.ui\n{text}\nmsgstr "z"\n'
    assert list(office.catalogue(io.BytesIO(content.encode()))) == [
        ("", "Language: de"),
        (plain, "z"),
    ]


def test_neither_plurals_nor_obsolete_entries_are_translations() -> None:
    plural = 'msgid "a"\nmsgid_plural "as"\nmsgstr[0] "b"\nmsgstr[1] "bs"\n\n'
    content = f'{plural}#~ msgid "c"\n#~ msgstr "d"\n\n{ENTRY.format("e", "f")}'
    assert list(office.catalogue(io.BytesIO(content.encode()))) == [("a", ""), ("e", "f")]


def _archive(to: Path, files: dict[str, list[tuple[str, str]]]) -> None:
    with tarfile.open(to, "w:xz") as tar:
        for name, pairs in files.items():
            content = (HEADER + "".join(ENTRY.format(*pair) for pair in pairs)).encode()
            entry = tarfile.TarInfo(f"translations/source/{name}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))


def test_messages_that_are_taken(tmp_path: Path) -> None:
    """By words and characters, in the order of paths: a folder comes before what it begins."""
    good = [("one two three four", "eins zwei drei"), ("w " * 99 + "w", "v " * 99 + "v")]
    bad = [
        ("one two three", "eins zwei drei vier"),
        ("one two three four", "eins zwei"),
        ("w " * 100 + "w", "v " * 99 + "v"),
        ("one two three four", "one two three four"),
        ("ab cd ef ghi", "a b c" + "d" * 25),  # 2.5 times the characters
        ("ab cd ef ghi", ""),
    ]
    files = {"de/a.po": [*bad, good[1]], "de/a/b.po": good[:1], "cs/a.po": good}
    _archive(tmp_path / "x", files)
    assert office.messages(tmp_path / "x", "de") == [good[:1], good[1:]]
    with pytest.raises(UserError, match=r"/x: .*translations/source/fr/"):
        office.messages(tmp_path / "x", "fr")
    (tmp_path / "x").write_bytes((tmp_path / "x").read_bytes()[:200])
    with pytest.raises(UserError, match="/x: cannot be unpacked"):
        office.messages(tmp_path / "x", "de")


def test_pieces_and_what_occurs_twice() -> None:
    """Pieces of 60 begin with each file. Test comes first, and is not in train."""
    first = [(f"a{n}", f"A{n}") for n in range(130)]
    second = [("A61!", "later"), ("a125 ?", "valid"), ("b", "B"), ("B", "again")]
    found = office.split([first, second], {"test": [1], "valid": [3]})
    assert found["test"] == first[60:120]
    assert found["valid"] == [("A61!", "later"), *second[1:3]]  # "a61", "a61 " and "a61!" differ
    assert found["train"] == [*first[:60], *first[120:]]


def _manifest(folder: Path, texts: dict[str, bytes]) -> Path:
    content = {**texts, **{path.name: path.read_bytes() for path in folder.glob("*.xz")}}
    own = {"archive": ARCHIVE, "held_out": {"de": {"test": [0], "valid": [2]}}}
    (folder / "manifest").write_text(manifest("office", content, "http://127.0.0.1:9", **own))
    return folder / "manifest"


@pytest.fixture
def texts(tmp_path: Path) -> dict[str, bytes]:
    """Of three pieces; ``tmp_path/packed`` has the archive of them, and ``plain`` themselves."""
    files = {
        f"de/{name}.po": [(f"{name} is text {n} here", f"{name} ist hier {n}") for n in range(60)]
        for name in "abc"
    }
    made = {}
    for split, name in (("train", "b"), ("valid", "c"), ("test", "a")):
        for side, lang in enumerate(("en", "de")):
            lines = [pair[side] for pair in files[f"de/{name}.po"]]
            made[f"en-de.{split}.{lang}"] = "".join(f"{line}\n" for line in lines).encode()
    for folder in ("packed", "plain"):
        (tmp_path / folder).mkdir()
    _archive(tmp_path / "packed" / ARCHIVE, files)
    _manifest(tmp_path / "packed", made)
    for name, text in made.items():
        (tmp_path / "plain" / name).write_bytes(text)
    _manifest(tmp_path / "plain", made)
    return made


@pytest.mark.parametrize(("folder", "pair"), [("packed", "en-de"), ("plain", "de-en")])
def test_office(folder: str, pair: str, texts: dict[str, bytes], tmp_path: Path) -> None:
    given = ("--from", tmp_path / folder, "--manifest", tmp_path / folder / "manifest")
    prepare("office", pair, *given, "--out", tmp_path / "out", *SMALL).ok()
    for name, text in texts.items():
        assert (tmp_path / "out" / "raw" / name.removeprefix("en-de.")).read_bytes() == text
    assert stages_of(tmp_path / "out") == ["raw", "tok", "bpe.codes", "bpe", "bin"]


def test_an_archive_of_other_texts(texts: dict[str, bytes], tmp_path: Path) -> None:
    other = {**texts, "en-de.valid.de": b"Etwas anderes.\n"}
    changed = _manifest(tmp_path / "packed", other)
    given = ("--from", tmp_path / "packed", "--manifest", changed, "--out", tmp_path / "out")
    message = only_error(prepare("office", *given, *SMALL))
    assert ARCHIVE in message
    assert "en-de.valid.de" in message
    assert not (tmp_path / "out" / "raw").exists()


def test_mixed(
    texts: dict[str, bytes], original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The three corpora one after the other; the second run needs none of them."""
    given, out = tmp_path / "given", tmp_path / "out"
    shutil.copytree(original, given / "multi30k")
    shutil.copytree(tmp_path / "plain", given / "office")
    entries = download.corpora()
    for folder in (original, tmp_path / "plain"):
        for corpus, entry in download.corpora(folder / "manifest").items():
            entries[corpus] |= entry
    (tmp_path / "corpora.yaml").write_text(yaml.safe_dump(entries))
    monkeypatch.setattr(download, "CORPORA", tmp_path / "corpora.yaml")
    (given / "news").mkdir()
    for year in range(2008, 2018):
        for lang, line in (("en", "in {} some news"), ("de", "neues aus {} hier")):
            (given / "news" / f"newstest{year}.en-de.{lang}").write_text(line.format(year) + "\n")
    words = ("mixed", "en-de", "--out", out, "--no-clean", *SMALL)
    prepare(*words, "--from", given).ok()
    for split, years in (("train", range(2008, 2015)), ("valid", [2015]), ("test", [2016, 2017])):
        for lang, line in (("en", "in {} some news"), ("de", "neues aus {} hier")):
            captions = (original / "made" / f"{split}.{lang}").read_bytes()
            news = "".join(f"{line.format(year)}\n" for year in years).encode()
            program = texts[f"en-de.{split}.{lang}"]
            assert (out / "raw" / f"{split}.{lang}").read_bytes() == captions + news + program
            if split == "test":
                for name, part in (("captions", captions), ("news", news), ("office", program)):
                    assert (out / "raw" / f"{name}.{lang}").read_bytes() == part
    assert not [path for path in (out / "raw").iterdir() if path.is_dir()]
    assert not (out / "fetched").exists()
    said = prepare(*words, "--from", tmp_path / "nowhere").ok()
    assert said.count("done before") == 5
