"""Texts and archives from a folder and from a web server; single files of archives."""

from __future__ import annotations

import gzip
import random
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from diet_mt.corpora import download
from diet_mt.corpora.download import Source, extract, fetch
from diet_mt.system.engine import LOCK
from diet_mt.system.errors import UserError

from .server import Server, manifest, serving
from .wmt18 import tar

TEXT = "".join(f"Satz {n} über Wörter\n" for n in range(3000)).encode()
PACKED = gzip.compress(TEXT, mtime=0)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving({"train.de.gz": PACKED, "a.tgz": PACKED}) as running:
        yield running


@pytest.fixture
def listed(server: Server, tmp_path: Path) -> Path:
    """A manifest of a text and of an archive."""
    path = tmp_path / "manifest"
    path.write_text(manifest("wmt18", {"train.de": TEXT, "a.tgz": PACKED}, server.url))
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != LOCK)


def _get(listed: Path, name: str, out: Path, tries: int = 1) -> bytes:
    return fetch(Source("wmt18", None, listed, tries, 0), [name], out)[name].read_bytes()


@pytest.mark.parametrize(("name", "content"), [("train.de", TEXT), ("a.tgz", PACKED)])
@pytest.mark.parametrize("ranges", [True, False])
def test_a_dropped_connection_is_resumed(
    server: Server, listed: Path, out: Path, name: str, content: bytes, ranges: bool
) -> None:
    server.cut, server.drops, server.ranges = 1000, 2, ranges
    for _ in range(2):  # the second time nothing is downloaded
        assert _get(listed, name, out, tries=3) == content
    assert server.requests == ["", "bytes=1000-", "bytes=2000-" if ranges else "bytes=1000-"]
    assert _names(out) == [name]


@pytest.mark.parametrize(("name", "part"), [("train.de", "train.de.gz"), ("a.tgz", "a.tgz")])
def test_a_later_run_continues(
    server: Server, listed: Path, out: Path, name: str, part: str
) -> None:
    server.cut = 300
    with pytest.raises(UserError, match=f"raw/{part}: "):
        _get(listed, name, out)
    assert (out / f"{part}.part").read_bytes() == PACKED[:300]
    server.cut = None
    _get(listed, name, out)
    assert server.requests[-1] == "bytes=300-"
    # Killed after the last byte.
    (out / name).unlink()
    (out / f"{part}.part").write_bytes(PACKED)
    _get(listed, name, out)
    assert _names(out) == [name]


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("train.de", gzip.compress(TEXT[5:]), f"train.de: {len(TEXT) - 5} bytes"),
        ("train.de", PACKED[:-9], "train.de.gz"),
        ("train.de", PACKED[:200] + b"\0" * 50 + PACKED[250:], "train.de.gz"),
        ("train.de", b"<html>moved</html>", "train.de: 18 bytes"),
        ("train.de", gzip.compress(b"x" * (64 << 20)), "train.de.gz.* 50 "),
        ("a.tgz", PACKED[:-1], f"a.tgz: .*{len(PACKED) - 1} .*{len(PACKED)}"),
        ("a.tgz", PACKED[:-1] + b"x", "a.tgz"),
    ],
    ids=["other", "cut", "overwritten", "page", "bomb", "cut archive", "other archive"],
)
def test_a_wrong_file_leaves_nothing_behind(
    server: Server, listed: Path, out: Path, name: str, content: bytes, what: str
) -> None:
    server.content = dict.fromkeys(server.content, content)
    with pytest.raises(UserError, match=what):
        _get(listed, name, out)
    assert _names(out) == []


def test_a_page_does_not_replace_half_a_download(server: Server, listed: Path, out: Path) -> None:
    out.mkdir()
    (out / "a.tgz.part").write_bytes(PACKED[:500])
    server.content["/raw/a.tgz"], server.ranges = b"<html>log in</html>", False
    with pytest.raises(UserError, match=r"a\.tgz: .* 19 bytes"):
        _get(listed, "a.tgz", out)
    assert (out / "a.tgz.part").read_bytes() == PACKED[:500]


@pytest.mark.parametrize(("status", "tries"), [(404, 1), (503, 3)])
def test_only_faults_of_the_server_are_tried_again(
    server: Server, listed: Path, out: Path, status: int, tries: int
) -> None:
    server.status = status
    with pytest.raises(UserError, match=f"raw/a.tgz: .*{status} "):
        _get(listed, "a.tgz", out, tries=3)
    assert len(server.requests) == tries


@pytest.mark.parametrize(("name", "content"), [("train.de", TEXT), ("train.de.gz", PACKED)])
def test_files_of_a_folder(
    server: Server, listed: Path, out: Path, tmp_path: Path, name: str, content: bytes
) -> None:
    """Texts are unpacked; an archive is used in place. Neither is changed."""
    given = tmp_path / "given"
    source = Source("wmt18", given, listed)
    given.mkdir()
    for missing, where in (("train.de", "given"), ("a.tgz", "given"), ("train.fr", "manifest")):
        with pytest.raises(UserError, match=f"{where}: .*{missing}"):
            source.files([missing])
    (given / name).write_bytes(content)
    (given / "a.tgz").write_bytes(PACKED)
    paths = fetch(source, ["train.de", "a.tgz"], out)
    assert paths == {"train.de": out / "train.de", "a.tgz": given / "a.tgz"}
    assert paths["train.de"].read_bytes() == TEXT
    (out / "train.de").write_bytes(TEXT[5:])
    assert fetch(source, ["train.de"], out)["train.de"].read_bytes() == TEXT
    (given / name).write_bytes(b"x")
    (given / "a.tgz").write_bytes(b"x")
    for wanted, file in (("a.tgz", "a.tgz"), ("train.de", name)):
        with pytest.raises(UserError, match=rf"given/{file}: .* {wanted}: 1 bytes"):
            fetch(source, [wanted], tmp_path / "other")
        assert (given / file).read_bytes() == b"x"
    assert _names(tmp_path / "other") == []
    assert server.requests == []


@pytest.mark.parametrize("text", ["wmt18: [", "- wmt18", "wmt18: files"])
def test_a_damaged_manifest_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest").write_text(text)
    with pytest.raises(UserError, match="/manifest: "):
        Source("wmt18", manifest=tmp_path / "manifest").files([])


def test_the_shipped_corpora() -> None:
    """Every file has a checksum, every archive a URL; SacreBLEU knows the years and the same
    archive of newstest2018.
    """
    from sacrebleu.dataset import DATASETS

    entries = download.corpora()
    for corpus in ("multi30k", "office", "wmt18"):
        for file in Source(corpus).files(entries[corpus]["files"]):
            method, _, digest = file.checksum.rpartition(":")
            assert len(digest) == (32 if method == "md5" else 64)
            assert bool(file.url) == file.name.endswith(("gz", "xz")), file.name
            assert file.url.endswith(file.name) or not file.url
    (test,) = Source("wmt18").files(["test.tgz"])
    theirs = DATASETS["wmt18"]
    assert (theirs.data, theirs.md5) == ([test.url], [test.checksum.removeprefix("md5:")])
    names = entries["newstest"]["names"]
    for year in range(2008, 2019):
        known = DATASETS[names.get(year, f"wmt{year % 100:02d}")].langpairs
        assert {"en-de", "en-cs"} <= known.keys()


CONTENT = {
    "a/one.de": b"eins\n",
    "a/skip.fr": b"x" * 5000,
    "./a/two.de": b"zwei\n",
    "noise": random.Random(1).randbytes(50_000),  # takes as much room packed
    "last": b"!",
}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "some.tgz"
    path.write_bytes(tar(CONTENT))
    return path


def test_only_wanted_and_missing_members_are_extracted(archive: Path, out: Path) -> None:
    """Reading stops at the last of them: the rest cannot be read here."""
    data = archive.read_bytes()
    archive.write_bytes(data[: len(data) // 2] + b"\0" * (len(data) - len(data) // 2))
    extract(archive, out, ["a/two.de", "a/one.de"])
    assert _names(out) == ["one.de", "two.de"]
    assert (out / "two.de").read_bytes() == b"zwei\n"
    (out / "one.de").write_bytes(b"whole\n")
    (out / "two.de").unlink()
    extract(archive, out, ["a/two.de", "a/one.de"])
    assert (out / "one.de").read_bytes() == b"whole\n"
    assert (out / "two.de").read_bytes() == b"zwei\n"


@pytest.mark.parametrize("damage", ["cut", "overwritten", "not packed"])
def test_a_damaged_archive_is_named(archive: Path, out: Path, damage: str) -> None:
    data = archive.read_bytes()
    archive.write_bytes(
        {
            "cut": data[: len(data) // 2],
            "overwritten": data[:60] + b"\0" * (len(data) - 60),
            "not packed": b"<html>",
        }[damage]
    )
    with pytest.raises(UserError, match=r"some\.tgz: "):
        extract(archive, out, ["last"])
    assert _names(out) == []


def test_members_that_are_no_files_are_missing(tmp_path: Path, out: Path) -> None:
    """A folder, a link to a file outside, and one to another member."""
    (tmp_path / "secret").write_text("x")
    path = tmp_path / "x.tgz"
    with tarfile.open(path, "w:gz") as packed:
        packed.add(tmp_path, arcname="folder", recursive=False)
        packed.add(tmp_path / "secret", arcname="file")
        for name, kind, target in (
            ("outside", tarfile.SYMTYPE, str(tmp_path / "secret")),
            ("hard", tarfile.LNKTYPE, "file"),
        ):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, target
            packed.addfile(entry)
    for member in ("folder", "outside", "hard", "none"):
        with pytest.raises(UserError, match=rf"x\.tgz: .*{member}"):
            extract(path, out, [member])
    assert _names(out) == []
