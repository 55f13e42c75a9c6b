"""Downloads that break off, go through a proxy, or are not what was asked for."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from diet_mt.corpora.download import Patience, download
from diet_mt.errors import UserError

from .server import Server, serving

DATA = bytes(range(256)) * 40


@pytest.fixture
def server() -> Iterator[Server]:
    with serving({"file": DATA}) as running:
        yield running


def _get(server: Server, part: Path, tries: int = 1, size: int | None = len(DATA)) -> None:
    download(f"{server.url}/file", part, size=size, patience=Patience(tries, 0))


@pytest.mark.parametrize("ranges", [True, False])
def test_a_dropped_connection_is_taken_up_again(
    server: Server, tmp_path: Path, ranges: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    server.cut, server.drops, server.ranges = 1000, 2, ranges
    _get(server, tmp_path / "part", tries=3)
    assert (tmp_path / "part").read_bytes() == DATA
    assert server.requests == ["", "bytes=1000-", "bytes=2000-" if ranges else "bytes=1000-"]
    assert capsys.readouterr().err.count("bytes arrived; trying again in 0 s") == 2


def test_after_the_last_try_what_came_is_kept(server: Server, tmp_path: Path) -> None:
    server.cut = 100
    with pytest.raises(UserError, match=r"download failed .* run again to continue"):
        _get(server, tmp_path / "part", tries=3)
    assert (tmp_path / "part").read_bytes() == DATA[:300]


@pytest.mark.parametrize("size", [len(DATA), None])
def test_what_was_complete_is_not_fetched_again(
    server: Server, tmp_path: Path, size: int | None
) -> None:
    (tmp_path / "part").write_bytes(DATA)
    _get(server, tmp_path / "part", size=size)
    assert (tmp_path / "part").read_bytes() == DATA
    assert server.requests == ([] if size else [f"bytes={len(DATA)}-"])


def test_what_is_too_long_is_begun_anew(server: Server, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(DATA + b"x")
    _get(server, tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == DATA


def test_a_server_whose_file_is_shorter_than_what_came(server: Server, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(DATA[:500])
    server.content["/raw/file"] = DATA[:400]
    with pytest.raises(UserError, match="has no more than 500 bytes, expected 10240"):
        _get(server, tmp_path / "part")
    assert not (tmp_path / "part").exists()


def test_a_page_is_known_by_its_type(server: Server, tmp_path: Path) -> None:
    server.type = "text/html; charset=utf-8"
    with pytest.raises(UserError, match="sent a web page, not the file; open the address"):
        _get(server, tmp_path / "part", tries=3)
    assert len(server.requests) == 1
    assert not (tmp_path / "part").exists()


@pytest.mark.parametrize(("status", "tries"), [(404, 1), (403, 1), (503, 3)])
def test_refusals_are_named_and_only_faults_of_the_server_tried_again(
    server: Server, tmp_path: Path, status: int, tries: int
) -> None:
    server.status = status
    with pytest.raises(UserError, match=f"raw/file: the server answered {status} "):
        _get(server, tmp_path / "part", tries=3)
    assert len(server.requests) == tries


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"127\.0\.0\.1:9/x: download failed"):
        download("http://127.0.0.1:9/x", tmp_path / "part", size=1, patience=Patience(2, 0))
    assert list(tmp_path.iterdir()) == []


def test_the_proxy_of_the_environment_is_used(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", server.url.removesuffix("/raw"))
    monkeypatch.setattr(urllib.request, "_opener", None)  # it reads the environment once
    # No such host: what answers is the proxy.
    url = "http://corpora.invalid/raw/file"
    download(url, tmp_path / "part", size=len(DATA), patience=Patience(1, 0))
    assert (tmp_path / "part").read_bytes() == DATA
    assert server.addresses == [url]
