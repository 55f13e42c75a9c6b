"""The news test sets, on sentences of our own."""

from __future__ import annotations

from pathlib import Path

from ..corpora import wmt18
from .originals import write_news
from .running import SMALL, prepare, state


def test_the_news(tmp_path: Path) -> None:
    news, out = tmp_path / "news", tmp_path / "out"
    news.mkdir()
    write_news(news)
    words = ("newstest", "en-cs", "--from", news, "--out", out, *SMALL)
    said = prepare(*words).ok()
    for line in ("train.cs: 240, expected 240", "valid.en: 30, ex", "test.cs: 30, ex"):
        assert line in said
    assert "train: 240 pairs of 2008, 2009, 2010, 2011, 2012, 2013, 2014, 2015" in said
    for split, year in (("valid", 2017), ("test", 2016)):
        given = (news / f"newstest{year}.en-cs.cs").read_bytes()
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
