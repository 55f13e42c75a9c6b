"""Corpora as users have them, and what the recipes make of them.

With pytest-xdist all workers share them: each is made once, and only read afterwards.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from diet_mt.corpora import word_order

from ..corpora import wmt18
from ..corpora.server import serving
from ..session_folder import session_folder
from .runner import prepare, run

SIZES = {"train": 300, "valid": 21, "test": 13}
ORIGINAL = {"train": "train", "valid": "val", "test": "test_2016_flickr"}

Once = Callable[[str, Callable[[Path], None]], Path]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """A folder of this name, filled by a function unless another worker has done so."""
    base = session_folder(tmp_path_factory)

    def make(name: str, fill: Callable[[Path], None]) -> Path:
        folder, done = base / name, base / f"{name}.done"
        with open(base / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                folder.mkdir()
                fill(folder)
                done.touch()
        return folder

    return make


@pytest.fixture(scope="session")
def original(once: Once) -> Path:
    """A folder like the one that MULTI30K_DIR names, and the manifest of its files."""
    return once("original", _write_original)


def _write_original(folder: Path) -> None:
    word_order.generate(folder / "made", SIZES, seed=5)
    manifest = []
    for split, name in ORIGINAL.items():
        for lang in ("en", "de"):
            text = (folder / "made" / f"{split}.{lang}").read_bytes()
            (folder / f"{name}.{lang}.gz").write_bytes(gzip.compress(text))
            manifest.append(f"{name}.{lang}\t{len(text)}\t{hashlib.sha256(text).hexdigest()}\n")
    (folder / "manifest").write_text("".join(manifest))


@pytest.fixture(scope="session")
def prepared(original: Path, once: Once) -> Path:
    """Multi30k, prepared."""

    def fill(folder: Path) -> None:
        given = {"MULTI30K_DIR": original, "MULTI30K_MANIFEST": original / "manifest"}
        result = run("multi30k", OUT=folder / "with a space", **given)
        assert result.returncode == 0, result.stderr

    return once("multi30k", fill) / "with a space"


@pytest.fixture(scope="session")
def archives(once: Once) -> Path:
    """A folder for ``--archives``, and the manifest of what it holds."""
    return once("archives", lambda folder: wmt18.write(folder) and None)


@pytest.fixture(scope="session")
def downloaded(archives: Path, once: Once) -> Path:
    """WMT18 de-en with byte-pair codes, from a server that breaks off twice; by two processes."""

    def fill(folder: Path) -> None:
        content = {path.name: path.read_bytes() for path in archives.glob("*.tgz")}
        with serving(content) as server:
            server.cut, server.drops = 300, 2
            (folder / "manifest").write_text(wmt18.manifest(content, server.url))
            settings = {"WMT18_MANIFEST": folder / "manifest", "WORKERS": 2}
            result = prepare(archives, folder / "out", "de-en", **settings)
            assert result.returncode == 0, result.stderr
            assert sorted(server.requests) == [*[""] * 5, "bytes=300-", "bytes=600-"]

    return once("downloaded", fill) / "out"


@pytest.fixture(scope="session")
def offline(archives: Path, once: Once) -> Path:
    """WMT18 cs-en with SentencePiece, from a folder of archives; by two processes."""

    def fill(folder: Path) -> None:
        arguments = ["--subwords", "spm", "--archives", str(archives), "cs-en"]
        result = prepare(archives, folder / "out", *arguments, WORKERS=2)
        assert result.returncode == 0, result.stderr

    return once("offline", fill) / "out"
