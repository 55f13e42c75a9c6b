"""Corpora as users have them, and what is prepared of them.

With pytest-xdist all workers share them: each is made once, and only read afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from .. import processes
from ..bert.made import write_vocabulary
from ..corpora import wmt18
from ..corpora.server import serving
from .running import SMALL, prepare, sacrebleu_in, write_multi30k

Once = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(autouse=True)
def _own_sacrebleu(tmp_path: Path) -> Iterator[None]:
    with sacrebleu_in(tmp_path / "sacrebleu"):
        yield


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    return partial(processes.once, processes.session_folder(tmp_path_factory))


@pytest.fixture(scope="session")
def original(once: Once) -> Path:
    """A folder for ``prepare multi30k --from``, and the manifest of its files."""
    return once("original", write_multi30k)


@pytest.fixture(scope="session")
def prepared(original: Path, once: Once) -> Path:
    """Multi30k, prepared; by fairseq's command itself."""

    def fill(folder: Path) -> None:
        given = ("--from", original, "--manifest", original / "manifest")
        prepare("multi30k", *given, "--out", folder / "with a space", *SMALL, real=True).ok()

    return once("multi30k", fill) / "with a space"


@pytest.fixture(scope="session")
def archives(once: Once) -> Path:
    """A folder for ``prepare wmt18 --from``, and the manifest of what it holds."""
    return once("archives", wmt18.write)


def of_wmt18(pair: str, archives: Path, out: Path, *more: object) -> tuple[object, ...]:
    """Words for ``prepare`` that make a small WMT18."""
    own = ("--manifest", archives / "manifest", "--downloads", out.parent / "downloads")
    subwords = ("--workers", 1, "--spm-size", 130) if "spm" in more else SMALL
    return ("wmt18", pair, "--out", out, *own, *subwords, "--tries", 3, "--pause", 0, *more)


@pytest.fixture(scope="session")
def downloaded(archives: Path, once: Once) -> Path:
    """WMT18 de-en with byte-pair codes, from a server that breaks off twice; by two processes."""

    def fill(folder: Path) -> None:
        content = {path.name: path.read_bytes() for path in archives.glob("*.tgz")}
        with serving(content) as server, sacrebleu_in(folder / "sacrebleu"):
            server.cut, server.drops = 300, 2
            (folder / "manifest").write_text(wmt18.manifest(content, server.url))
            prepare(*of_wmt18("de-en", folder, folder / "out", "--workers", 2)).ok()
            assert sorted(server.requests) == [*[""] * 5, "bytes=300-", "bytes=600-"]

    return once("downloaded", fill) / "out"


@pytest.fixture(scope="session")
def offline(archives: Path, once: Once) -> Path:
    """WMT18 cs-en with SentencePiece, from a folder of archives; by two processes."""

    def fill(folder: Path) -> None:
        given = ("--subwords", "spm", "--from", archives, "--workers", 2)
        with sacrebleu_in(folder / "sacrebleu"):
            prepare(*of_wmt18("cs-en", archives, folder / "out", *given)).ok()

    return once("offline", fill) / "out"


@pytest.fixture(scope="session")
def vocabulary(once: Once) -> Path:
    """A folder for --vocab."""

    return once("vocabulary", lambda folder: write_vocabulary(folder / "bin")) / "bin"
