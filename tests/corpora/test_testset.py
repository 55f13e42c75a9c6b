"""Test sets by way of SacreBLEU."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from diet_mt.corpora import testset
from diet_mt.errors import UserError

from . import wmt18


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "given" / "test.tgz"
    path.parent.mkdir()
    path.write_bytes(wmt18.tar(wmt18.members()["test.tgz"]))
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of SacreBLEU's for this test alone."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(testset, "SACREBLEU_DIR", str(folder))
    from sacrebleu.dataset import DATASETS

    dataset = DATASETS["wmt18"]
    monkeypatch.setattr(dataset, "_outdir", str(folder / "wmt18"))
    monkeypatch.setattr(dataset, "_rawdir", str(folder / "wmt18" / "raw"))
    return folder


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
    assert testset.main(["cached", "wmt18", "cs-en"]) == 1
    testset.sentences("wmt18", "cs-en", archive, _md5(archive))
    assert testset.main(["cached", "wmt18", "cs-en"]) == 0
    archive.unlink()
    assert testset.main(["write", "wmt18", "cs-en", str(tmp_path / "test")]) == 0
    assert len((tmp_path / "test.cs").read_text().split("\n")) == 8


def test_another_archive_is_refused_and_leaves_no_trace(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a checksum of ours, SacreBLEU's own counts."""
    arguments = ["write", "wmt18", "de-en", str(tmp_path / "test"), "--archive", str(archive)]
    assert testset.main(arguments) == 2
    errors = [x for x in capsys.readouterr().err.split("\n") if x.startswith("error: ")]
    assert len(errors) == 1
    assert "SacreBLEU could not take the test set wmt18 from it" in errors[0]
    assert not (tmp_path / "test.de").exists()
    assert testset.main([*arguments, "--md5", _md5(archive)]) == 0  # the next try begins afresh


def test_an_interrupted_unpacking_is_made_good(archive: Path, cache: Path) -> None:
    half = cache / "wmt18" / "raw" / "wmt18.test.tgz"
    half.parent.mkdir(parents=True)
    half.write_bytes(archive.read_bytes()[:100])
    sources, references = testset.sentences("wmt18", "de-en", archive, _md5(archive))
    assert len(sources) == len(references) == 7


def test_unknown_sets_are_named() -> None:
    for name, pair in (("wmt99", "de-en"), ("wmt18", "de-cs")):
        with pytest.raises(UserError, match=f"no test set {name} for {pair}; see sacrebleu --list"):
            testset.sentences(name, pair)
