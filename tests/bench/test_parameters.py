"""Table 6 of Chen et al. 2021, both columns, to the last decimal that it prints."""

from __future__ import annotations

import pytest

from diet_mt.bench.parameters import ROWS, VOCABULARIES, EncoderRow, parameters, table


@pytest.mark.parametrize("language", VOCABULARIES)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.label)
def test_the_papers_table_6(row: EncoderRow, language: str) -> None:
    found = parameters(row, VOCABULARIES[language])
    assert round(found / 1e6, 1) == dict(zip(VOCABULARIES, row.printed, strict=True))[language]


def test_what_each_has_more_than_the_baseline() -> None:
    layers, heads, longest, rank, width = 12, 12, 512, 128, 768
    at_the_input = (longest + 2) * width  # tables of positions and segments
    more = {
        "DIET-REL": layers * heads * (2 * longest - 1 + 4),
        "DIET-REL (share)": heads * (2 * longest - 1 + 4),
        "DIET-ABS (rank 128)": layers * heads * (2 * longest * rank + 4),
        "DIET-ABS (rank 128, share)": heads * (2 * longest * rank + 4),
    }
    baseline = parameters(ROWS[0], VOCABULARIES["English"])
    assert baseline == 110_104_890  # as docs/encoders.md has it; printed as 110.1
    for row in ROWS[2:]:
        found = parameters(row, VOCABULARIES["English"])
        assert found - baseline == more[row.label] - at_the_input, row.label


def test_the_table_has_a_line_for_each() -> None:
    lines = table().split("\n")
    assert len(lines) == 2 + len(ROWS)
    assert "112.86M |" in lines[3]
