"""Test sets by way of SacreBLEU."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from diet_mt.corpora import testset
from diet_mt.errors import UserError

from ..prepare.running import sacrebleu_in
from . import wmt18


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "given" / "test.tgz"
    path.parent.mkdir()
    path.write_bytes(wmt18.tar(wmt18.members()["test.tgz"]))
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path) -> Iterator[Path]:
    """A cache of SacreBLEU's for this test alone."""
    with sacrebleu_in(tmp_path / "cache"):
        yield tmp_path / "cache"


def _md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes()).hexdigest()


def test_the_text_is_what_sacrebleu_prints(archive: Path, cache: Path, tmp_path: Path) -> None:
    written = testset.write("wmt18", "de-en", tmp_path / "test", archive, _md5(archive))
    assert written == {"test": 7, "test1": 6}
    environment = {**os.environ, "SACREBLEU": str(cache)}
    for pair, stem in (("de-en", "test"), ("en-de", "test1")):
        for side, lang in zip(("src", "ref"), pair.split("-"), strict=True):
            command = [sys.executable, "-m", "sacrebleu", "-t", "wmt18", "-l", pair, "--echo", side]
            printed = subprocess.run(command, env=environment, capture_output=True, check=True)
            assert (tmp_path / f"{stem}.{lang}").read_bytes() == printed.stdout
    assert (tmp_path / "test1.de").read_text() in (tmp_path / "test.de").read_text()


def test_one_set_is_enough_where_the_directions_agree(archive: Path, tmp_path: Path) -> None:
    written = testset.write("wmt18", "cs-en", tmp_path / "test", archive, _md5(archive))
    assert written == {"test": 7}
    assert not (tmp_path / "test1.cs").exists()


def test_what_sacrebleu_has_needs_no_archive(archive: Path, tmp_path: Path) -> None:
    assert not testset.cached("wmt18", "cs-en")
    testset.sentences("wmt18", "cs-en", archive, _md5(archive))
    assert testset.cached("wmt18", "cs-en")
    archive.unlink()
    assert testset.write("wmt18", "cs-en", tmp_path / "test") == {"test": 7}
    assert len((tmp_path / "test.cs").read_text().split("\n")) == 8


def test_another_archive_is_refused_and_leaves_no_trace(archive: Path, tmp_path: Path) -> None:
    """Without a checksum of ours, SacreBLEU's own counts."""
    with pytest.raises(UserError, match="SacreBLEU could not take the test set wmt18 from it"):
        testset.write("wmt18", "de-en", tmp_path / "test", archive)
    assert not (tmp_path / "test.de").exists()
    testset.write("wmt18", "de-en", tmp_path / "test", archive, _md5(archive))  # begins afresh


def test_an_interrupted_unpacking_is_made_good(archive: Path, cache: Path) -> None:
    half = cache / "wmt18" / "raw" / "wmt18.test.tgz"
    half.parent.mkdir(parents=True)
    half.write_bytes(archive.read_bytes()[:100])
    sources, references = testset.sentences("wmt18", "de-en", archive, _md5(archive))
    assert len(sources) == len(references) == 7


def test_unknown_sets_are_named() -> None:
    for name, pair in (("wmt99", "de-en"), ("wmt18", "de-cs")):
        with pytest.raises(UserError, match=f"test set of SacreBLEU for {pair}: {name}; "):
            testset.sentences(name, pair)
