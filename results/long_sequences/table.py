"""The table of rows of ``diet-mt bench memory``, as Markdown.

python results/long_sequences/table.py results/long_sequences/*.jsonl > results/long_sequences.md
"""

import sys
from pathlib import Path

from diet_mt.bench.rows import circumstances, read_records
from diet_mt.report.blocks import Table, markdown_table

KEYS = ("measure", "case", "length", "peak_bytes", "command", "layers", "embed_dim")


def page(files):
    records = read_records(files, KEYS)
    first = records[0]
    lengths = sorted({record["length"] for record in records})
    peaks = {}
    for record in records:
        row = peaks.setdefault((record["measure"], record["case"]), {})
        row[record["length"]] = record["peak_bytes"] / 2**20
    rows = []
    for names, row in peaks.items():
        cells = [f"{row[n]:,.0f} MiB" if n in row else "" for n in lengths]
        for place, n in enumerate(lengths):
            if n in row and n // 2 in row:
                cells[place] += f" (x {row[n] / row[n // 2]:.1f})"
        rows.append([*names, *cells])
    heads = ["pass", "model", *(f"n = {n}" for n in lengths)]
    table = markdown_table(Table(heads, rows, [False, False, *[True] * len(lengths)]))
    return (
        f"{table}\n\nPeak memory of one pass beyond the model and the optimizer's state; in "
        "parentheses, over half the length.\n\n"
        f"Encoder and decoder of {first['layers']} layers each, width {first['embed_dim']}, "
        f"{first['attention_heads']} heads, {first['vocabulary']:,} words, one pair of n source "
        f"and n target tokens; {circumstances(first)}\n"
    )


if __name__ == "__main__":
    print(page([Path(name) for name in sys.argv[1:]]), end="")
