"""scripts/reproduce-table4.sh from raw text to the table, with numbers even smaller than small."""

from __future__ import annotations

from pathlib import Path

import pytest

from diet_mt.evaluation.records import read_results

from ..corpora import wmt18
from .runner import ROOT
from .scripts import run
from .test_train_wmt18 import TINY, changed

TABLE4 = ROOT / "scripts" / "reproduce-table4.sh"


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    """Ten years of very short news, and folders for all that is made of them."""
    news = tmp_path / "news"
    news.mkdir()
    sentences = wmt18.sentences(300, seed=6)
    for number, year in enumerate(range(2008, 2018)):
        for lang in ("en", "cs"):
            some = sentences[number * 30 : number * 30 + 30]
            text = "".join(each[lang] + "\n" for each in some)
            (news / f"newstest{year}.en-cs.{lang}").write_text(text, encoding="utf-8")
    return TINY | {
        "SCALE": "small",
        "NEWSTEST_DIR": str(news),
        "DATA_DIR": str(tmp_path / "data"),
        "CHECKPOINTS": str(tmp_path / "checkpoints"),
        "RESULTS": str(tmp_path / "results"),
        "BPE_MERGES": "200",
        "MAX_UPDATE": "6",
        "SYSTEMS": "diet_rel",
        "DIRECTIONS": "en-cs",
    }


@pytest.mark.slow
def test_from_raw_text_to_the_table(settings: dict[str, str], tmp_path: Path) -> None:
    said = run(TABLE4, cwd=tmp_path, **settings)
    assert "== 4/4 results" in said
    rows = read_results(tmp_path / "results" / "newstest.en-cs.jsonl")
    assert [row.arch for row in rows] == ["diet_rel_tiny"]
    for row in rows:
        assert (row.test_set, row.direction) == ("newstest2016", "en-cs")
        assert (row.length_penalty, row.beam, row.lenpen, row.updates) == ("gnmt", 10, 0.6, 6)
    table = said[: said.index("== 1/4")]  # on standard output, which comes first
    assert "diet_rel_tiny" in table
    assert "18.68" not in table, "the paper's figures are of newstest2018"

    before = changed(tmp_path / "checkpoints") | changed(tmp_path / "data")
    again = run(TABLE4, cwd=tmp_path, **settings)
    assert again[: again.index("== 1/4")] == table
    assert changed(tmp_path / "checkpoints") | changed(tmp_path / "data") == before
    assert len(read_results(tmp_path / "results" / "newstest.en-cs.jsonl")) == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"SCALE": "tiny"}, "error: SCALE 'tiny': choose full or small"),
        ({"DIRECTIONS": "en-fr"}, "error: direction 'en-fr': choose from en-de, de-en, en-cs"),
    ],
)
def test_what_cannot_be_stops_before_anything_is_made(
    wrong: dict[str, str], message: str, settings: dict[str, str], tmp_path: Path
) -> None:
    assert message in run(TABLE4, cwd=tmp_path, status=2, **(settings | wrong))
    assert {path.name for path in tmp_path.iterdir()} == {"news"}
