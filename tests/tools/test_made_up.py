"""Archives for the rehearsal: the layout of WMT18, and text like text."""

from __future__ import annotations

import statistics
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from diet_mt.corpora import clean
from diet_mt.corpora.manifest import read_manifest
from tools import made_up


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made_up, "HELD_OUT", 20)


def test_text_like_text() -> None:
    pairs = list(made_up.sentences(2000, seed=1))
    assert len(pairs) == 2000
    assert pairs == list(made_up.sentences(2000, seed=1))
    assert pairs[0] != next(made_up.sentences(2000, seed=2))
    assert 20 < statistics.mean(len(english.split()) for _, english in pairs) < 30
    counts = Counter(word for _, english in pairs for word in english.split())
    assert 0.4 < counts["of"] / counts["the"] < 0.65  # the second half as often as the first
    faults = {clean.fault_of(*pair, clean.Limits(("de", "en"))) for pair in pairs}
    assert faults == {""}  # in the right language, too


def test_archives_of_the_true_layout(tmp_path: Path) -> None:
    made_up.write_archives(tmp_path, 1000)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {*(name for name, _, _ in made_up.CORPORA), "dev.tgz", "test.tgz", "manifest"}
    for name, item in read_manifest(tmp_path / "manifest").items():
        assert item.size in (None, (tmp_path / name).stat().st_size)
    lines = Counter[str]()
    for archive, stem, _ in made_up.CORPORA:
        with tarfile.open(tmp_path / archive) as packed:
            assert packed.getnames() == [f"{stem}.de", f"{stem}.en"]
            for lang in made_up.PAIR:
                content = packed.extractfile(f"{stem}.{lang}")
                assert content is not None
                lines[lang] += content.read().count(b"\n")
    assert lines == {"de": 1000, "en": 1000}
    with tarfile.open(tmp_path / "dev.tgz") as packed:
        assert "dev/newstest2017-deen-src.de.sgm" in packed.getnames()


def test_every_filter_has_something_to_find() -> None:
    pairs = list(made_up.sentences(1600, seed=1))
    last = [pairs[0], *pairs]
    noisy = [made_up.add_noise(n, pair, last[n]) for n, pair in enumerate(pairs)]
    found = clean.clean(noisy, clean.Limits(("de", "en")))
    assert found.dropped == {
        clean.INVALID: 2, clean.EMPTY: 2, clean.OVERLONG: 2, clean.RATIO: 2, clean.LANGUAGE: 2,
    }  # fmt: skip
    assert len(found.kept) - len(set(found.kept)) == 2
    assert all(found.mended[what] >= 2 for what in ("not in NFC", "control characters"))
