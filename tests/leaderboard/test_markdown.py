"""The board for a README."""

from __future__ import annotations

from diet_mt.evaluation.groups import group
from diet_mt.leaderboard.markdown import markdown
from diet_mt.leaderboard.standings import Section, section_of

from ..evaluation.rows import row


def test_rows_and_alignment(plain: Section) -> None:
    lines = markdown([plain]).split("\n")
    assert "| system | BLEU | ± | to sinusoidal | chrF | BLEU of each seed | parameters |" in lines
    assert "| --- | ---: | ---: | ---: | ---: | --- | ---: |" in lines
    assert (
        "| diet_rel_tiny | 34.75 | 1.50 | +1.25 | 55.50 | 1: 34.00, 2: 35.50 | 1,234,567 |" in lines
    )
    assert "- BLEU nrefs:1|tok:13a|version:2.6.0" in lines
    assert "fairseq-generate data/bin --path CHECKPOINTS/checkpoint_best.pt" in lines


def test_names_cannot_break_the_table() -> None:
    (found,) = group([row(system="a|b<i>&", test_set="x<br>")])
    shown = markdown([section_of(found, {})])
    assert "| a\\|b&lt;i>&amp; (diet_rel_tiny) |" in shown
    assert "**x&lt;br>, en-de" in shown
