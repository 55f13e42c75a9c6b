"""The table of rows of ``diet-mt bench encoder``, with the paper's figures, as Markdown.

python results/encoder_cost/table.py results/encoder_cost/*.jsonl > results/encoder_cost.md
"""

import sys
from pathlib import Path

from diet_mt.bench.rows import circumstances, read_records
from diet_mt.report.blocks import Table, markdown_table, number
from diet_mt.report.published import COSTS

KEYS = ("shape", "encoding", "measure", "ms_median", "ratio_median", "command")


def cells(record):
    """Milliseconds, and the median and quartiles of the ratio in percent."""
    low, median, high = (
        number(100 * record[f"ratio_{key}"] - 100, "+.1f") for key in ("low", "median", "high")
    )
    return [f"{record['ms_median']:.0f}", f"{median} % ({low} to {high})"]


def table(records):
    """Of one shape and command."""
    first = records[0]
    over = first.get("over", "learned")
    heads, encodings = ["encoding"], {}
    for record in records:
        encodings.setdefault(record["encoding"], {})[record["measure"]] = record
    for kind in ("train", "forward"):
        heads += [f"{kind}, ms", f"over {over}", *(["paper"] if over == "learned" else [])]
    rows = []
    for name, own in encodings.items():
        row = [name]
        for place, kind in enumerate(("train", "forward")):
            row += cells(own[kind]) if kind in own else ["", ""]
            if over == "learned":
                paper = COSTS.get(name, {}).get(first["shape"])
                row.append(f"{paper[place]:+d} %" if paper else "")
        rows.append(row)
    yield f"**BERT_{first['shape'].upper()}**\n\n{markdown_table(Table(heads, rows))}\n"
    yield f"Median (quartiles); over {over}: median of the rounds' ratios.\n"
    yield "The row `learned` compares two copies of one encoder: its ratio is the error.\n"
    size = f"{first['batch']} x {first['tokens']} tokens; rounds: {first['rounds']}"
    yield f"{size}; {circumstances(first)}\n"


def page(files):
    groups = {}
    for record in read_records(files, KEYS):
        groups.setdefault((record["shape"], circumstances(record)), []).append(record)
    return "\n".join(line for records in groups.values() for line in table(records))


if __name__ == "__main__":
    print(page([Path(name) for name in sys.argv[1:]]), end="")
