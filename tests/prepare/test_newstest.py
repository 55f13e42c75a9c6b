"""The news test sets, on sentences of our own."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.corpora import recipes, testset
from diet_mt.corpora.settings import TextSettings
from diet_mt.errors import UserError

from ..corpora import wmt18
from .originals import write_news
from .running import SMALL, prepare, state

YEARS = {"train": "2008-2009,2014", "valid": "2017", "test": "2016"}


def test_the_news(tmp_path: Path) -> None:
    news, out = tmp_path / "news", tmp_path / "out"
    news.mkdir()
    write_news(news)
    words = ("newstest", "en-cs", "--from", news, "--out", out, *SMALL)
    said = prepare(*words).ok()
    for line in ("train.cs: 240, expected 240", "valid.en: 30, ex", "test.cs: 30, ex"):
        assert line in said
    for split, years in (("train", range(2008, 2016)), ("valid", [2017]), ("test", [2016])):
        given = b"".join((news / f"newstest{year}.en-cs.cs").read_bytes() for year in years)
        assert (out / "raw" / f"{split}.cs").read_bytes() == given
    assert "\u0085" in (out / "raw" / "train.cs").read_text()
    english, czech = (
        (out / "clean" / f"train.{lang}").read_text().split("\n")[:-1] for lang in ("en", "cs")
    )
    same = {s["en"]: s["cs"] for s in wmt18.sentences(300, seed=6)}
    assert [same[line] for line in english] == [line.replace("…", "") for line in czech]
    assert "mended\tWindows-1252 characters\t6\n" in (out / "clean.tsv").read_text()
    assert (out / "settings").read_text() == (
        "en-cs BPE_MERGES=150 CLEAN='--max-words 250 --max-chars 2000 --ratio 2.0 "
        "--language-chars 40 --certainty 0.9' years=2008-2015+2017+2016\n"
    )
    before = state(out)
    assert prepare(*words).ok().count("done before") == 6
    assert state(out) == before


def _make_raw(out: Path, folder: Path | None) -> Path:
    preparation = recipes.newstest(out, TextSettings(("en", "cs")), folder, YEARS)
    preparation.stages[0].make(out / "raw")
    return out / "raw"


def test_a_shorter_side_is_refused(tmp_path: Path) -> None:
    write_news(tmp_path)
    (tmp_path / "newstest2009.en-cs.cs").write_text("one\n")
    with pytest.raises(UserError, match=r"newstest2009\.en-cs\.en: 30 lines, but .*\.cs has 1"):
        _make_raw(tmp_path / "out", tmp_path)


def test_without_a_folder_they_come_from_sacrebleu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(testset, "sentences", lambda name, pair: ([name], [pair]))
    raw = _make_raw(tmp_path, None)
    assert (raw / "train.en").read_text() == "wmt08\nwmt09\nwmt14/full\n"
    assert (raw / "test.cs").read_text() == "en-cs\n"


def test_years_are_lists_and_spans() -> None:
    assert recipes.years_in("2008-2010,2012") == [2008, 2009, 2010, 2012]
    for wrong in ("all", "2009-2008", "", "2008,"):
        with pytest.raises(UserError, match=f"'{wrong}' is no list of years"):
            recipes.years_in(wrong)
