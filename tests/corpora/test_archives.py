"""Content of archives: WMT18's text and SGML, SacreBLEU's test sets, LibreOffice's messages."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from diet_mt.corpora import archives, testset
from diet_mt.system.errors import UserError

from ..prepare.running import sacrebleu_in
from . import wmt18


def _stem(folder: Path, name: str, source: bytes, target: bytes) -> Path:
    (folder / f"{name}.de").write_bytes(source)
    (folder / f"{name}.en").write_bytes(target)
    return folder / name


def test_training_text_is_joined_byte_by_byte(tmp_path: Path) -> None:
    one = _stem(tmp_path, "one", b"a\xc2\x85b\xe2\x80\xa8c\r\n\xff", b"1\n2")
    two = _stem(tmp_path, "two.de-en", b"\xef\xbb\xbfc\n\n", b"3\n4\n")
    assert archives.concatenate([one, two], ("de", "en"), tmp_path) == 4
    assert (tmp_path / "train.en").read_bytes() == b"1\n2\n3\n4\n"
    source = (tmp_path / "train.de").read_bytes()
    assert source.count(b"\n") == 4  # the lines stay aligned, and a missing last end is added
    assert source.endswith(b"\xef\xbb\xbfc\n\n")
    (tmp_path / "train.de").unlink()
    stem = _stem(tmp_path, "x", b"a\nb\nc\n", b"1\n2\n")
    with pytest.raises(UserError, match=r"x\.de: 3 .*x\.en .*2"):
        archives.concatenate([stem], ("de", "en"), tmp_path)
    assert not (tmp_path / "train.de").exists()


def _sgml(folder: Path, text: str, name: str = "x.sgm") -> Path:
    (folder / name).write_bytes(text.encode())
    return folder / name


def test_segments_of_sgml(tmp_path: Path) -> None:
    """In order, whatever stands between; entities are replaced once."""
    text = (
        '<doc docid="1">\n<hl>\n<seg id="1"> Gerd &amp; Co. </seg>\n</hl>\n<p><seg id="2">two'
        '\u2028 lines\n over</seg> <SEG id="3">caf\u00e9</SEG></p>\n'
    )
    segments = ["Gerd & Co.", "two lines over", "caf\u00e9"]
    assert archives.read_segments(_sgml(tmp_path, text)) == segments
    source = _sgml(tmp_path, "<seg id='1'>a</seg>")
    assert archives.segments_of(source, _sgml(tmp_path, "<seg>b</seg>", "y")) == [("a", "b")]
    with pytest.raises(UserError, match=r"x\.sgm: 1 .*y .*2"):
        archives.segments_of(source, _sgml(tmp_path, "<seg>b</seg><seg>c</seg>", "y"))
    assert archives.unescape("&lt;a&gt; &quot;b&quot; &apos;c&apos;") == "<a> \"b\" 'c'"
    plain = archives.unescape("&amp;lt; &#228; &#x20AC; &copy AT&T &nbsp;")
    assert plain == "&lt; ä € &copy AT&T &nbsp;"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (b"<doc></doc>", ": 0 "),
        (b'<seg id="1">a</seg><seg id="2">b', ": 2 .* 1 "),
        (b'<seg id="1">a</seg><seg id="2"> </seg>', "segment 2"),
        (b"<seg>\xff</seg>", "byte 5"),
    ],
)
def test_an_incomplete_set_is_refused(tmp_path: Path, text: bytes, what: str) -> None:
    (tmp_path / "x.sgm").write_bytes(text)
    with pytest.raises(UserError, match=rf"x\.sgm.*{what}"):
        archives.read_segments(tmp_path / "x.sgm")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "given" / "test.tgz"
    path.parent.mkdir()
    path.write_bytes(wmt18.tar(wmt18.members()["test.tgz"]))
    return path


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    """A cache of SacreBLEU's for this test alone."""
    with sacrebleu_in(tmp_path / "cache"):
        yield tmp_path / "cache"


def test_a_test_set_is_what_sacrebleu_prints(archive: Path, cache: Path, tmp_path: Path) -> None:
    """The two directions of the German set differ here; the Czech ones do not."""
    testset.write("wmt18", "de-en", tmp_path, archive)
    for pair, stem, count in (("de-en", "test", 7), ("en-de", "test1", 6)):
        side, lang = ("src", pair[:2]) if stem == "test" else ("ref", pair[3:])
        command = [sys.executable, "-m", "sacrebleu", "-t", "wmt18", "-l", pair, "--echo", side]
        environment = {**os.environ, "SACREBLEU": str(cache)}
        printed = subprocess.run(command, env=environment, capture_output=True, check=True)
        assert (tmp_path / f"{stem}.{lang}").read_bytes() == printed.stdout
        assert printed.stdout.count(b"\n") == count
    testset.write("wmt18", "cs-en", tmp_path, archive)
    assert not (tmp_path / "test1.cs").exists()


def test_a_cached_test_set_needs_no_archive(archive: Path, cache: Path) -> None:
    """An archive whose unpacking was interrupted is not taken for unpacked."""
    half = cache / "wmt18" / "raw" / "wmt18.test.tgz"
    half.parent.mkdir(parents=True)
    half.write_bytes(archive.read_bytes()[:100])
    assert not testset.cached("wmt18", "cs-en")
    sides = testset.sentences("wmt18", "cs-en", archive)
    assert [len(side) for side in sides] == [7, 7]
    assert testset.cached("wmt18", "cs-en")
    archive.unlink()
    assert testset.sentences("wmt18", "cs-en") == sides


def test_a_damaged_archive_is_named_and_leaves_no_trace(
    archive: Path, cache: Path, tmp_path: Path
) -> None:
    whole = archive.read_bytes()
    archive.write_bytes(whole[:100])
    with pytest.raises(UserError, match=r"test\.tgz: .*wmt18"):
        testset.write("wmt18", "de-en", tmp_path, archive)
    assert not (tmp_path / "test.de").exists()
    archive.write_bytes(whole)
    testset.write("wmt18", "de-en", tmp_path, archive)
    with pytest.raises(UserError, match="de-cs: wmt18"):
        testset.sentences("wmt18", "de-cs")


ENTRY = 'msgctxt "ID"\nmsgid "{}"\nmsgstr "{}"\n\n'
HEADER = 'msgid ""\nmsgstr ""\n"Language: de\\n"\n\n'


def translations(to: Path, files: dict[str, list[tuple[str, str]]]) -> None:
    """The archive of LibreOffice's translations, with these messages."""
    with tarfile.open(to, "w:xz") as tar:
        for name, pairs in files.items():
            content = (HEADER + "".join(ENTRY.format(*pair) for pair in pairs)).encode()
            entry = tarfile.TarInfo(f"translations/source/{name}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))


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
    """Neither plurals nor obsolete entries are translations."""
    plural = 'msgid "a"\nmsgid_plural "as"\nmsgstr[0] "b"\nmsgstr[1] "bs"\n\n'
    content = f'{HEADER}#. note\n#: file.ui\n{text}\nmsgstr "z"\n\n{plural}#~ msgid "c"\n'
    assert list(archives.catalogue(io.BytesIO(content.encode()))) == [
        ("", "Language: de"),
        (plain, "z"),
        ("a", ""),
    ]


def test_messages_are_selected_by_words_and_characters(tmp_path: Path) -> None:
    """In the order of paths: a folder comes before a file that its name begins."""
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
    translations(tmp_path / "x", files)
    assert archives.messages(tmp_path / "x", "de") == [good[:1], good[1:]]
    with pytest.raises(UserError, match=r"/x: .*translations/source/fr/"):
        archives.messages(tmp_path / "x", "fr")
    (tmp_path / "x").write_bytes((tmp_path / "x").read_bytes()[:200])
    with pytest.raises(UserError, match="/x: "):
        archives.messages(tmp_path / "x", "de")


def test_blocks_of_messages_and_repeated_texts() -> None:
    """Blocks of 60 begin with each file. Test comes first, and is not in train."""
    first = [(f"a{n}", f"A{n}") for n in range(130)]
    second = [("A61!", "later"), ("a125 ?", "valid"), ("b", "B"), ("B", "again")]
    splits = archives.split([first, second], {"test": [1], "valid": [3]})
    assert splits["test"] == first[60:120]
    assert splits["valid"] == [("A61!", "later"), *second[1:3]]  # "a61", "a61 " and "a61!" differ
    assert splits["train"] == [*first[:60], *first[120:]]
