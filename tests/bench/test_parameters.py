"""Table 6 of Chen et al. 2021, both columns, to the last decimal that it prints."""

from __future__ import annotations

import pytest

from diet_mt.bench.parameters import ROWS, VOCABULARIES, Row, parameters, table


@pytest.mark.parametrize("language", VOCABULARIES)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.label)
def test_the_papers_table_6(row: Row, language: str) -> None:
    found = parameters(row, VOCABULARIES[language])
    assert round(found / 1e6, 1) == row.printed[language]


def test_the_table_has_a_line_for_each() -> None:
    lines = table().split("\n")
    assert len(lines) == 2 + len(ROWS)
    assert "112.86M |" in lines[3]
