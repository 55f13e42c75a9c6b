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


def _main(news: Path, out: Path, train: str, valid: str = "2010", test: str = "2011") -> int:
    years = ["--train", train, "--valid", valid, "--test", test]
    return newstest.main(["--out", str(out), "--folder", str(news), *years, "en", "de"])


def test_years_follow_one_another_and_stay_aligned(news: Path, tmp_path: Path) -> None:
    assert _main(news, tmp_path / "out", "2008-2009") == 0
    lines = {}
    for lang in ("en", "de"):
        lines[lang] = (tmp_path / "out" / f"train.{lang}").read_text().split("\n")[:-1]
        assert [line[:4] for line in lines[lang]] == ["2008"] * 3 + ["2009"] * 3
    assert lines["de"] == [line.replace("en", "de") for line in lines["en"]]
    assert lines["en"][1] == "2008 en 1\u0085more"  # not the end of a line
    assert (tmp_path / "out" / "test.de").read_text().startswith("2011 de 0")


@pytest.mark.parametrize(
    ("train", "what"),
    [
        ("2008-2010", "newstest2010: asked for twice; a year serves one purpose"),
        ("2007", "holds neither newstest2007.en-de.en nor newstest2007.en-de.en.gz"),
        ("2009-2008", "'2009-2008' is no list of years; write them as 2008-2015,2017"),
        ("all", "'all' is no list of years"),
    ],
)
def test_wrong_years_are_one_line(
    news: Path, tmp_path: Path, train: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _main(news, tmp_path / "out", train) == 2
    message = capsys.readouterr().err
    assert what in message
    assert message.startswith("error: ")
    assert message.count("\n") == 1


def test_a_shorter_side_is_refused(news: Path, tmp_path: Path) -> None:
    (news / "newstest2008.en-de.de").write_text("one\n")
    with pytest.raises(UserError, match=r"newstest2008\.en-de\.en: more lines than"):
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
