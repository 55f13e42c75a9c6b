"""Fetching files: texts and archives, from a folder and from a web server of our own."""

from __future__ import annotations

import gzip
import hashlib
import shutil
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import pytest

from diet_mt.corpora import fetch, manifest
from diet_mt.corpora.download import Patience
from diet_mt.errors import UserError
from diet_mt.stages.lock import OWN_FILES

from .server import Server, serving

TEXT = "".join(f"Satz {n} über Wörter\n" for n in range(3000)).encode()
PACKED = gzip.compress(TEXT, mtime=0)
ITEM = manifest.Item("train.de", len(TEXT), hashlib.sha256(TEXT).hexdigest())
ONCE = Patience(1, 0)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving({"train.de.gz": PACKED, "a.tgz": PACKED}) as running:
        yield running


def _archive(server: Server | None = None) -> manifest.Item:
    url = f"{server.url}/a.tgz" if server else "http://127.0.0.1:9/a.tgz"
    return manifest.Item("a.tgz", len(PACKED), hashlib.sha256(PACKED).hexdigest(), url)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name not in OWN_FILES)


def test_a_text_comes_unpacked_and_checked(server: Server, tmp_path: Path) -> None:
    fetch.text_from_web(server.url + "/", ITEM, tmp_path, ONCE)
    assert (tmp_path / "train.de").read_bytes() == TEXT
    assert _names(tmp_path) == ["train.de"]


@pytest.mark.parametrize("ranges", [True, False])
def test_an_interrupted_text_continues(server: Server, tmp_path: Path, ranges: bool) -> None:
    server.cut, server.ranges = 1000, ranges
    with pytest.raises(UserError, match=r"train\.de\.gz: download failed .* run again to continue"):
        fetch.text_from_web(server.url, ITEM, tmp_path, ONCE)
    assert _names(tmp_path) == ["train.de.gz.part"]
    assert (tmp_path / "train.de.gz.part").read_bytes() == PACKED[:1000]
    server.cut = None
    fetch.text_from_web(server.url, ITEM, tmp_path, ONCE)
    assert server.requests == ["", "bytes=1000-"]
    assert (tmp_path / "train.de").read_bytes() == TEXT
    assert _names(tmp_path) == ["train.de"]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (gzip.compress(TEXT.replace(b"Satz 7", b"Satz 8")), "not the expected text"),
        (PACKED[:-9], "cannot be unpacked"),
        (PACKED[:200] + b"\0" * 50 + PACKED[250:], "cannot be unpacked"),
        (b"<html>moved</html>", "sent a web page"),
        (b"", "not the expected text"),
    ],
)
def test_a_wrong_text_leaves_nothing_behind(
    server: Server, tmp_path: Path, content: bytes, what: str
) -> None:
    server.content["/raw/train.de.gz"] = content
    with pytest.raises(UserError, match=what) as caught:
        fetch.text_from_web(server.url, ITEM, tmp_path, ONCE)
    assert server.url in str(caught.value)
    assert _names(tmp_path) == []


@pytest.mark.parametrize(("name", "content"), [("train.de", TEXT), ("train.de.gz", PACKED)])
def test_a_folder_serves_plain_or_packed_texts(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "out").mkdir()
    fetch.text_from_folder(tmp_path, ITEM, tmp_path / "out")
    assert (tmp_path / "out" / "train.de").read_bytes() == TEXT


def test_a_folder_without_the_text_or_with_another_one(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(UserError, match=r"holds neither train\.de nor train\.de\.gz"):
        fetch.all_are_there(tmp_path, [ITEM])
    (tmp_path / "train.de").write_bytes(TEXT[:-1])
    with pytest.raises(UserError) as caught:
        fetch.text_from_folder(tmp_path, ITEM, tmp_path / "out")
    for part in (str(tmp_path / "train.de"), str(len(TEXT) - 1), ITEM.checksum, "replace it"):
        assert part in str(caught.value)
    assert _names(tmp_path / "out") == []
    assert (tmp_path / "train.de").exists()  # the user's file is not ours to remove


def test_an_archive_stays_packed_and_comes_once(server: Server, tmp_path: Path) -> None:
    for _ in range(2):
        fetch.archive_from_web(_archive(server), tmp_path, ONCE)
        assert (tmp_path / "a.tgz").read_bytes() == PACKED
    assert len(server.requests) == 1
    assert _names(tmp_path) == ["a.tgz"]


def test_an_archive_of_the_users_is_used_where_it_lies(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no a\.tgz; fetch from http"):
        fetch.all_are_there(tmp_path, [_archive()])
    (tmp_path / "a.tgz").write_bytes(PACKED)
    assert fetch.archive_in_folder(tmp_path, _archive()) == tmp_path / "a.tgz"
    (tmp_path / "a.tgz").write_bytes(PACKED[:50])
    with pytest.raises(UserError, match=r"not the expected archive: 50 bytes .*fetch it from http"):
        fetch.archive_in_folder(tmp_path, _archive())
    assert (tmp_path / "a.tgz").read_bytes() == PACKED[:50]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (PACKED[:-1], f"the server's file has {len(PACKED) - 1} bytes, expected {len(PACKED)}"),
        (PACKED[:-1] + b"x", "not the expected archive: .* run again to fetch anew"),
        (b"<!DOCTYPE html><p>Sorry" + PACKED[23:], "sent a web page"),
    ],
    ids=["truncated", "wrong checksum", "page of the right size"],
)
def test_a_wrong_archive_leaves_nothing_behind(
    server: Server, tmp_path: Path, content: bytes, what: str
) -> None:
    server.content["/raw/a.tgz"] = content
    with pytest.raises(UserError, match=what) as caught:
        fetch.archive_from_web(_archive(server), tmp_path, ONCE)
    assert str(caught.value).startswith(f"{server.url}/a.tgz: ")
    assert _names(tmp_path) == []
    server.content["/raw/a.tgz"] = PACKED
    fetch.archive_from_web(_archive(server), tmp_path, ONCE)


def test_an_archive_that_does_not_fit_is_not_begun(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")(10, 9, 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(UserError, match=r"a\.tgz needs 0 MiB more, but only 0 are free; make room"):
        fetch.archive_from_web(_archive(server), tmp_path, ONCE)
    assert server.requests == []


def test_files_of_a_manifest(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"{item.name}\t{item.size}\t{item.checksum}" for item in (ITEM, _archive())]
    listed = tmp_path / "manifest"
    listed.write_text(f"# name, bytes, sha256\n{lines[0]}\n{lines[1]}\t{server.url}/a.tgz\n")
    out, origin = tmp_path / "out", fetch.Origin(listed, url=server.url)
    for _ in range(2):
        found = fetch.fetch(origin, ["train.de", "a.tgz"], out)
        assert found == {"train.de": out / "train.de", "a.tgz": out / "a.tgz"}
        assert f"train.de: {len(TEXT):,} bytes, checked" in capsys.readouterr().err
    assert len(server.requests) == 2  # nothing is downloaded twice
    (out / "train.de").write_bytes(TEXT[5:])
    fetch.fetch(origin, ["train.de"], out)  # unless it is not what it should be
    assert (out / "train.de").read_bytes() == TEXT
    with pytest.raises(UserError, match=r"manifest: does not list train\.fr"):
        origin.items(["train.fr"])
