"""Settings, disks and archives that are wrong: one line each, and nothing half-made."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ..corpora import wmt18
from ..corpora.server import Server, serving
from .runner import only_error, prepare, run

EUROPARL, CRAWL = "training-parallel-europarl-v7.tgz", "training-parallel-commoncrawl.tgz"


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("BPE_MERGES", "many", "BPE_MERGES must be a positive number, got 'many'"),
        ("WORKERS", "0", "WORKERS must be a positive number, got '0'"),
        ("PYTHON", "/nowhere/python", "/nowhere/python: not found"),
        ("SUBWORDS", "words", "SUBWORDS 'words': choose bpe or spm"),
        ("TRAIN_PAIRS", "0", "--train must be at least 1, got 0"),
        ("CLEAN", "--max-words few", "invalid int value: 'few'"),
    ],
)
def test_bad_settings_are_one_line(tmp_path: Path, name: str, value: str, what: str) -> None:
    sizes = {"TRAIN_PAIRS": 5, "VALID_PAIRS": 5, "TEST_PAIRS": 5}
    result = run("demo", **{"OUT": tmp_path / "out", **sizes, name: value})
    if name == "CLEAN":
        assert result.returncode == 2
        assert what in result.stderr
    else:
        assert what in only_error(result)


@pytest.mark.parametrize("place", ["a file", "below a file", "read only"])
def test_a_folder_that_cannot_be_written(tmp_path: Path, place: str) -> None:
    if place == "read only":
        # For root, who may write anywhere, too.
        if not Path("/proc/self").exists():
            pytest.skip("no /proc")
        message = only_error(run("demo", OUT="/proc/sys"))
        assert message == (
            "error: /proc/sys/settings: cannot be written; make room, or set OUT to another folder"
        )
        return
    (tmp_path / "file").touch()
    out = tmp_path / "file" if place == "a file" else tmp_path / "file" / "out"
    message = only_error(run("demo", OUT=out))
    assert message == f"error: {out}: the folder cannot be made; set OUT to another one"


@pytest.mark.parametrize(
    ("size", "stage"), [(10_000, "extracted"), (20_000, "raw"), (25_000, "bpe")]
)
def test_no_space_left_is_one_line_and_nothing_looks_complete(
    archives: Path, downloaded: Path, tmp_path: Path, size: int, stage: str
) -> None:
    out = tmp_path / "out"
    if stage == "bpe":
        _without(downloaded, out, "bpe", "bin")
    arguments = ["de-en", "--archives", str(archives)]
    message = only_error(prepare(archives, out, *arguments, file_bytes=size))
    assert message.startswith(f"error: {out}/{stage}.part/")
    assert message.endswith(": cannot be written (File too large); make room and run again")
    assert not (out / stage).exists()
    assert not list((out / f"{stage}.part").glob("*.part"))


def _without(made: Path, out: Path, *stages: str) -> None:
    shutil.copytree(made, out)
    for stage in stages:
        shutil.rmtree(out / stage)


def test_no_space_left_for_fairseq(archives: Path, downloaded: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    _without(downloaded, out, "bin")
    message = only_error(prepare(archives, out, "de-en", file_bytes=10_000))
    assert message.startswith(
        "error: fairseq-preprocess failed: OSError: [Errno 27] File too large"
    )
    assert message.endswith(f"(all of it in {out}/preprocess.log)")
    assert not (out / "bin").exists()


def test_too_little_room_is_said_beforehand(
    archives: Path, downloaded: Path, tmp_path: Path
) -> None:
    (tmp_path / "df").write_text("#!/bin/sh\necho; echo 'disk 9999999 1 2048 99% /'\n")
    (tmp_path / "df").chmod(0o755)
    out, path = tmp_path / "out", f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    _without(downloaded, out, "clean", "tok", "bpe", "bin")
    with open(out / "raw" / "train.de", "ab") as file:
        file.write(b"x" * (10 << 20))
    message = only_error(prepare(archives, out, "de-en", PATH=path))
    assert message == (
        f"error: {out}: clean needs about 10 MiB, but only 2 MiB are free; make room or set OUT "
        "elsewhere"
    )


def _changed(
    archives: Path, folder: Path, archive: str, change: Callable[[dict[str, bytes]], None]
) -> None:
    """A copy of the archives, one of them with other members; the manifest says it is right."""
    folder.mkdir()
    content = {path.name: path.read_bytes() for path in archives.glob("*.tgz")}
    members = wmt18.members()[archive]
    change(members)
    content[archive] = wmt18.tar(members)
    for name, data in content.items():
        (folder / name).write_bytes(data)
    (folder / "manifest").write_text(wmt18.manifest(content, "http://127.0.0.1:9"))


@pytest.mark.parametrize(
    ("archive", "member", "content", "what"),
    [
        (EUROPARL, "training/europarl-v7.de-en.en", None, "holds no training/europarl-v7.de-en.en"),
        (
            EUROPARL,
            "training/europarl-v7.de-en.en",
            b"One.\n",
            "but {out}/extracted/europarl-v7.de-en.en has 1",
        ),
        (CRAWL, "commoncrawl.de-en.de", b"", "commoncrawl.de-en.de: no lines"),
        ("dev.tgz", "dev/newstest2017-deen-ref.en.sgm", b"<seg>a</seg>", "9 segments, but"),
        ("dev.tgz", "dev/newstest2017-deen-ref.en.sgm", b"<html>", "0 segments begin and 0 end"),
        ("test.tgz", "test/newstest2018-deen-ref.en.sgm", b"<seg id='1'>a</seg>\n", "has 1"),
    ],
    ids=["missing", "unequal", "empty", "valid unequal", "no segments", "test unequal"],
)
def test_archives_that_do_not_hold_what_they_should(
    archives: Path, tmp_path: Path, archive: str, member: str, content: bytes | None, what: str
) -> None:
    def change(members: dict[str, bytes]) -> None:
        if content is None:
            del members[member]
        else:
            members[member] = content

    changed, out = tmp_path / "changed", tmp_path / "out"
    _changed(archives, changed, archive, change)
    message = only_error(prepare(changed, out, "de-en", "--archives", str(changed)))
    assert what.replace("{out}", str(out)) in message
    assert not (out / "raw").exists()


def _damage(server: Server, how: str) -> None:
    path = f"/raw/{CRAWL}"
    if how == "dropped":
        server.cut = 200
    elif how == "truncated":
        server.content[path] = server.content[path][:-100]
    elif how == "wrong checksum":
        server.content[path] = server.content[path][:-1] + b"x"
    elif how == "page":
        server.content[path] = b"<html>Sorry</html>" + bytes(len(server.content[path]) - 18)
    elif how == "missing":
        del server.content[path]


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ("dropped", "download failed (200 of "),
        ("truncated", f"{CRAWL}: the server's file has "),
        ("wrong checksum", f"{CRAWL}: not the expected archive: "),
        ("page", f"{CRAWL}: the server sent a web page"),
        ("missing", f"{CRAWL}: the server answered 404"),
    ],
)
def test_downloads_that_go_wrong(archives: Path, tmp_path: Path, how: str, what: str) -> None:
    content = {path.name: path.read_bytes() for path in archives.glob("*.tgz")}
    with serving(content) as server:
        (tmp_path / "manifest").write_text(wmt18.manifest(content, server.url))
        settings = {"WMT18_MANIFEST": tmp_path / "manifest", "FETCH": "--tries 1"}
        _damage(server, how)
        message = only_error(prepare(archives, tmp_path / "out", "de-en", **settings))
        assert what in message
        assert not (tmp_path / "out" / "archives").exists()
        assert not (tmp_path / "downloads" / CRAWL).exists()


def test_a_folder_of_archives_that_lacks_one(archives: Path, tmp_path: Path) -> None:
    some = tmp_path / "some"
    shutil.copytree(archives, some)
    (some / "test.tgz").unlink()
    message = only_error(prepare(archives, tmp_path / "out", "de-en", "--archives", str(some)))
    assert message.startswith(f"error: {some}: holds no test.tgz; fetch from http://")


def test_a_folder_of_archives_that_is_not_there_or_empty(archives: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    message = only_error(
        prepare(archives, tmp_path / "out", "de-en", "--archives", str(tmp_path / "empty"))
    )
    assert (
        "holds no training-parallel-europarl-v7.tgz, training-parallel-commoncrawl.tgz, " in message
    )
    message = only_error(
        prepare(archives, tmp_path / "out", "de-en", "--archives", str(tmp_path / "none"))
    )
    assert message == f"error: {tmp_path / 'none'}: there is no such folder to take the files from"


@pytest.mark.parametrize("content", [None, "", "dev.tgz"], ids=["moved", "emptied", "cut"])
def test_archives_that_have_moved_are_found_again(
    archives: Path, downloaded: Path, tmp_path: Path, content: str | None
) -> None:
    out = tmp_path / "out"
    _without(downloaded, out, "extracted", "raw", "clean", "tok", "bpe", "bin")
    lines = (out / "archives").read_text()
    (out / "archives").write_text(
        lines.replace(str(downloaded.parent), "/no/such") if content is None else content
    )
    result = prepare(archives, out, "de-en", "--archives", str(archives))
    assert result.returncode == 0, result.stderr
    assert "is not where it was; looking for it again" in result.stderr
    assert (out / "bin" / "dict.de.txt").exists()
