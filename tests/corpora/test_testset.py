"""Test sets by way of SacreBLEU."""

from __future__ import annotations

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


def test_the_text_is_what_sacrebleu_prints(archive: Path, cache: Path, tmp_path: Path) -> None:
    """The two directions of the German set differ here; the Czech ones do not."""
    testset.write("wmt18", "de-en", tmp_path, archive)
    environment = {**os.environ, "SACREBLEU": str(cache)}
    for pair, stem, count in (("de-en", "test", 7), ("en-de", "test1", 6)):
        for side, lang in zip(("src", "ref"), pair.split("-"), strict=True):
            command = [sys.executable, "-m", "sacrebleu", "-t", "wmt18", "-l", pair, "--echo", side]
            printed = subprocess.run(command, env=environment, capture_output=True, check=True)
            assert (tmp_path / f"{stem}.{lang}").read_bytes() == printed.stdout
            assert printed.stdout.count(b"\n") == count
    testset.write("wmt18", "cs-en", tmp_path, archive)
    assert not (tmp_path / "test1.cs").exists()


def test_what_sacrebleu_has_needs_no_archive(archive: Path, cache: Path) -> None:
    """One whose unpacking was interrupted is not taken for unpacked."""
    half = cache / "wmt18" / "raw" / "wmt18.test.tgz"
    half.parent.mkdir(parents=True)
    half.write_bytes(archive.read_bytes()[:100])
    assert not testset.cached("wmt18", "cs-en")
    given = testset.sentences("wmt18", "cs-en", archive)
    assert [len(side) for side in given] == [7, 7]
    assert testset.cached("wmt18", "cs-en")
    archive.unlink()
    assert testset.sentences("wmt18", "cs-en") == given


def test_a_damaged_archive_is_named_and_leaves_no_trace(archive: Path, tmp_path: Path) -> None:
    whole = archive.read_bytes()
    archive.write_bytes(whole[:100])
    with pytest.raises(UserError, match=r"test\.tgz: SacreBLEU cannot take the test set wmt18"):
        testset.write("wmt18", "de-en", tmp_path, archive)
    assert not (tmp_path / "test.de").exists()
    archive.write_bytes(whole)
    testset.write("wmt18", "de-en", tmp_path, archive)


def test_unknown_sets_are_named() -> None:
    for name, pair in (("wmt99", "de-en"), ("wmt18", "de-cs")):
        with pytest.raises(UserError, match=f"test set of SacreBLEU for {pair}: {name}; "):
            testset.sentences(name, pair)
