"""The news test sets, on sentences of our own."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..corpora import wmt18
from .runner import only_error, run, state


@pytest.fixture
def news(tmp_path: Path) -> Path:
    """A folder like the one that NEWSTEST_DIR names, with six lines that U+0085 would split."""
    folder = tmp_path / "news"
    folder.mkdir()
    sentences = wmt18.sentences(300, seed=6)
    for number, year in enumerate(range(2008, 2018)):
        some = sentences[number * 30 : number * 30 + 30]
        for lang in ("en", "cs"):
            lines = [s[lang] for s in some]
            if (year, lang) == (2009, "cs"):
                lines[:6] = [line.replace(",", ",\u0085") for line in lines[:6]]
            text = "".join(line + "\n" for line in lines)
            (folder / f"newstest{year}.en-cs.{lang}").write_text(text, encoding="utf-8")
    return folder


def test_the_news_recipe(news: Path, tmp_path: Path) -> None:
    settings = {"NEWSTEST_DIR": news, "OUT": tmp_path / "out"}
    first = run("newstest", "en-cs", **settings)
    assert first.returncode == 0, first.stderr
    for line in ("train.cs: 240 sentences, expected 240", "valid.en: 30 sen", "test.cs: 30 sen"):
        assert line in first.stderr
    assert "train: 240 pairs of 2008, 2009, 2010, 2011, 2012, 2013, 2014, 2015" in first.stderr
    for split, year in (("valid", 2017), ("test", 2016)):
        given = (news / f"newstest{year}.en-cs.cs").read_bytes()
        assert (tmp_path / "out" / "raw" / f"{split}.cs").read_bytes() == given
    assert "\u0085" in (tmp_path / "out" / "raw" / "train.cs").read_text()
    english, czech = (
        (tmp_path / "out" / "clean" / f"train.{lang}").read_text().split("\n")[:-1]
        for lang in ("en", "cs")
    )
    same = {s["en"]: s["cs"] for s in wmt18.sentences(300, seed=6)}
    assert [same[line] for line in english] == [line.replace("…", "") for line in czech]
    assert "mended\tWindows-1252 characters\t6\n" in (tmp_path / "out" / "clean.tsv").read_text()
    before = state(tmp_path / "out")
    second = run("newstest", "en-cs", **settings)
    assert second.stderr.count("done before") == 6
    assert state(tmp_path / "out") == before
    other = only_error(run("newstest", "en-cs", **settings, TEST_YEAR=2015))
    assert "was made with" in other


def test_a_year_serves_one_purpose(news: Path, tmp_path: Path) -> None:
    settings = {"NEWSTEST_DIR": news, "OUT": tmp_path / "out", "TRAIN_YEARS": "2008-2016"}
    assert "newstest2016: asked for twice" in only_error(run("newstest", "en-cs", **settings))
    assert not (tmp_path / "out" / "raw").exists()


def test_pairs_that_are_not_there(tmp_path: Path) -> None:
    message = only_error(run("newstest", "de-en", OUT=tmp_path / "out"))
    assert message == "error: language pair 'de-en': give en-de or en-cs"


@pytest.mark.parametrize("recipe", ["newstest", "multi30k"])
def test_help(tmp_path: Path, recipe: str) -> None:
    result = run(recipe, "--help", OUT=tmp_path / "out")
    assert (result.returncode, result.stderr) == (0, "")
    assert "# " not in result.stdout[:2]
    assert "Example  " in result.stdout
    assert not (tmp_path / "out").exists()


def test_a_year_that_the_folder_lacks(news: Path, tmp_path: Path) -> None:
    settings = {"NEWSTEST_DIR": news, "OUT": tmp_path / "out", "TEST_YEAR": "2018"}
    assert "add it, or ask for other years" in only_error(run("newstest", "en-cs", **settings))
