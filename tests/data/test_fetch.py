"""Fetching files: from a folder and from a web server of our own."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from diet_mt.data import fetch
from diet_mt.errors import UserError

from .server import Server, serving

TEXT = "".join(f"Satz {n} über Wörter\n" for n in range(3000)).encode()
PACKED = gzip.compress(TEXT, mtime=0)
ITEM = fetch.Text("train.de", len(TEXT), hashlib.sha256(TEXT).hexdigest())


@pytest.fixture
def server() -> Iterator[Server]:
    with serving({"train.de.gz": PACKED}) as running:
        yield running


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_comes_unpacked_and_checked(server: Server, tmp_path: Path) -> None:
    fetch.from_web(server.url + "/", ITEM, tmp_path)
    assert (tmp_path / "train.de").read_bytes() == TEXT
    assert _names(tmp_path) == ["train.de"]


@pytest.mark.parametrize("ranges", [True, False])
def test_an_interrupted_download_continues(server: Server, tmp_path: Path, ranges: bool) -> None:
    server.cut, server.ranges = 1000, ranges
    with pytest.raises(UserError, match=r"train\.de\.gz: download failed .* run again to continue"):
        fetch.from_web(server.url, ITEM, tmp_path)
    assert _names(tmp_path) == ["train.de.gz.part"]
    assert (tmp_path / "train.de.gz.part").read_bytes() == PACKED[:1000]
    server.cut = None
    fetch.from_web(server.url, ITEM, tmp_path)
    assert server.requests == ["", "bytes=1000-"]
    assert (tmp_path / "train.de").read_bytes() == TEXT
    assert _names(tmp_path) == ["train.de"]


def test_a_download_that_was_complete_is_not_repeated(server: Server, tmp_path: Path) -> None:
    (tmp_path / "train.de.gz.part").write_bytes(PACKED)
    fetch.from_web(server.url, ITEM, tmp_path)
    assert (tmp_path / "train.de").read_bytes() == TEXT


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (gzip.compress(TEXT.replace(b"Satz 7", b"Satz 8")), "not the expected text"),
        (PACKED[:-9], "cannot be unpacked"),
        (PACKED[:200] + b"\0" * 50 + PACKED[250:], "cannot be unpacked"),
        (b"<html>moved</html>", "not the expected text"),
        (b"", "not the expected text"),
    ],
)
def test_wrong_content_leaves_nothing_behind(
    server: Server, tmp_path: Path, content: bytes, what: str
) -> None:
    server.content["/raw/train.de.gz"] = content
    with pytest.raises(UserError, match=what) as caught:
        fetch.from_web(server.url, ITEM, tmp_path)
    assert server.url in str(caught.value)
    assert _names(tmp_path) == []


def test_a_missing_file_and_a_missing_server_are_named(server: Server, tmp_path: Path) -> None:
    del server.content["/raw/train.de.gz"]
    with pytest.raises(UserError, match=r"train\.de\.gz: the server answered 404"):
        fetch.from_web(server.url, ITEM, tmp_path)
    with pytest.raises(UserError, match="download failed"):
        fetch.from_web("http://127.0.0.1:9", ITEM, tmp_path)
    assert _names(tmp_path) == []


@pytest.mark.parametrize(("name", "content"), [("train.de", TEXT), ("train.de.gz", PACKED)])
def test_a_folder_serves_plain_or_packed_files(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "out").mkdir()
    fetch.from_folder(tmp_path, ITEM, tmp_path / "out")
    assert (tmp_path / "out" / "train.de").read_bytes() == TEXT


def test_a_folder_without_the_file_or_with_another_one(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(UserError, match=r"holds neither train\.de nor train\.de\.gz"):
        fetch.from_folder(tmp_path, ITEM, tmp_path / "out")
    (tmp_path / "train.de").write_bytes(TEXT[:-1])
    with pytest.raises(UserError) as caught:
        fetch.from_folder(tmp_path, ITEM, tmp_path / "out")
    for part in (str(tmp_path / "train.de"), str(len(TEXT) - 1), ITEM.sha256, "replace it"):
        assert part in str(caught.value)
    assert _names(tmp_path / "out") == []
    assert (tmp_path / "train.de").exists()  # the user's file is not ours to remove


def test_the_command(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = tmp_path / "manifest"
    manifest.write_text(f"# name, bytes, sha256\n{ITEM.name}\t{ITEM.size}\t{ITEM.sha256}\n")
    arguments = ["--manifest", str(manifest), "--url", server.url, "--out", str(tmp_path / "out")]
    assert fetch.main([*arguments, "train.de"]) == 0
    assert fetch.main([*arguments, "train.de"]) == 0
    assert len(server.requests) == 1  # nothing is downloaded twice
    (tmp_path / "out" / "train.de").write_bytes(TEXT[5:])
    assert fetch.main([*arguments, "train.de"]) == 0  # unless it is not what it should be
    assert (tmp_path / "out" / "train.de").read_bytes() == TEXT
    capsys.readouterr()
    assert fetch.main([*arguments, "train.fr"]) == 2
    assert capsys.readouterr().err == f"error: {manifest}: does not list train.fr\n"
    manifest.write_text("train.de 12 abc\n")
    assert fetch.main([*arguments, "train.de"]) == 2
    assert capsys.readouterr().err.startswith(f"error: {manifest}, line 1: expected name, bytes")
