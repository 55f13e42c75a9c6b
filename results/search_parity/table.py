"""The table of rows of ``compare.py``, as Markdown.

python results/search_parity/table.py results/search_parity/*.jsonl > results/search_parity.md
"""

import sys
from pathlib import Path

from diet_mt.bench.rows import circumstances, read_records
from diet_mt.report.blocks import Table, markdown_table

KEYS = ("encoding", "sentences", "hypotheses", "equal", "score_error", "differences", "command")
NOTES = """\
A tie: two candidates of one step have scores that are equal in float32 up to rounding, and the two
searches continue with different ones, so the scores of their final hypotheses may differ widely. In
float64 the hypotheses of both are equal.

Scores of equal hypotheses differ by rounding: they are sums of up to hundreds of nats in float32,
whose spacing is 3.1e-05 from 256 on and 6.1e-05 from 512 on, and the log-probability of a token is
the difference of two such sums."""


def page(files):
    records = read_records(files, KEYS)
    rows = [
        [*(str(record[key]) for key in KEYS[:4]), f"{record['score_error']:.1e}"]
        for record in records
    ]
    heads = ["model", "sentences", "hypotheses", "equal", "largest difference of scores"]
    out = [markdown_table(Table(heads, rows)), "", "Differences:", ""]
    for record in records:
        for each in record["differences"]:
            own, other = each.get("hypotheses", (0, 0))
            counts = "" if own == other else f"{own} hypotheses and {other}; "
            tie = "a tie earlier in the search, none in float64" if each["tie"] else "no tie"
            out.append(
                f"- {record['encoding']}, sentence {each['sentence']}, ranks {each['ranks']}: "
                f"{counts}scores differ by {each['largest_gap']:.1e}; {tie}"
            )
    out += [] if any(record["differences"] for record in records) else ["none."]
    out += ["", NOTES]
    for line in dict.fromkeys(map(circumstances, records)):
        out += ["", line]
    return "\n".join([*out, ""])


if __name__ == "__main__":
    print(page([Path(name) for name in sys.argv[1:]]), end="")
