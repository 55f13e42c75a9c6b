"""News test sets as a corpus."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from diet_mt.corpora import newstest
from diet_mt.errors import UserError


@pytest.fixture
def news(tmp_path: Path) -> Path:
    folder = tmp_path / "news"
    folder.mkdir()
    for year in range(2008, 2012):
        for lang in ("en", "de"):
            text = "".join(f"{year} {lang} {n}\u0085more\n" for n in range(3))
            name, data = f"newstest{year}.en-de.{lang}", text.encode()
            if year % 2:
                (folder / f"{name}.gz").write_bytes(gzip.compress(data))
            else:
                (folder / name).write_bytes(data)
    return folder


def test_years_follow_one_another_and_stay_aligned(news: Path, tmp_path: Path) -> None:
    years = {"train": newstest.years_in("2008-2009"), "test": [2011]}
    newstest.write(tmp_path / "out", news, years, ("en", "de"))
    lines = {}
    for lang in ("en", "de"):
        lines[lang] = (tmp_path / "out" / f"train.{lang}").read_text().split("\n")[:-1]
        assert [line[:4] for line in lines[lang]] == ["2008"] * 3 + ["2009"] * 3
    assert lines["de"] == [line.replace("en", "de") for line in lines["en"]]
    assert lines["en"][1] == "2008 en 1\u0085more"  # not the end of a line
    assert (tmp_path / "out" / "test.de").read_text().startswith("2011 de 0")


def test_years_are_lists_and_spans() -> None:
    assert newstest.years_in("2008-2010,2012") == [2008, 2009, 2010, 2012]
    for wrong in ("all", "2009-2008", "", "2008,"):
        with pytest.raises(UserError, match=f"'{wrong}' is no list of years"):
            newstest.years_in(wrong)


def test_a_shorter_side_is_refused(news: Path, tmp_path: Path) -> None:
    (news / "newstest2008.en-de.de").write_text("one\n")
    with pytest.raises(UserError, match=r"newstest2008\.en-de\.en: 3 lines, but .*\.de has 1"):
        newstest.write(tmp_path, news, {"train": [2008]}, ("en", "de"))


def test_without_a_folder_they_come_from_sacrebleu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def sentences(name: str, pair: str) -> tuple[list[str], list[str]]:
        asked.append((name, pair))
        return [name], [pair]

    monkeypatch.setattr("diet_mt.corpora.testset.sentences", sentences)
    years = {"train": [2008, 2014], "test": [2016]}
    newstest.write(tmp_path, None, years, ("en", "cs"))
    assert asked == [("wmt08", "en-cs"), ("wmt14/full", "en-cs"), ("wmt16", "en-cs")]
    assert (tmp_path / "train.en").read_text() == "wmt08\nwmt14/full\n"


def test_sacrebleu_knows_all_of_these_years() -> None:
    from sacrebleu.dataset import DATASETS

    for year in range(2008, 2019):
        name = newstest._OF_SACREBLEU.get(year, f"wmt{year % 100:02d}")
        assert {"en-de", "en-cs"} <= DATASETS[name].langpairs.keys()
