"""The records of the benchmark as Markdown."""

from __future__ import annotations

from typing import Any

from ..leaderboard.render import Grid, markdown_table
from .systems import STOCK, label

# What the table reads of a record.
KEYS = ("size", "system", "measure", "median", "command")
# Measure -> its unit, and what ours should be beside stock fairseq.
MEASURES = {
    "train": ("ms", "at most 1.00"),
    "forward": ("ms", "at most 1.00"),
    "decode": ("sentences/s", "at least 1.00"),
}


def table(records: list[dict[str, Any]]) -> str:
    """Markdown: one table for each device, precision and size."""
    groups: dict[tuple[str, ...], dict[str, dict[str, dict[str, Any]]]] = {}
    for record in records:
        where = (
            f"{record['size']}, {record['machine']}, {record['precision']}",
            f"threads: {record['threads']}; torch {record['torch']}; {record['fairseq']}; "
            f"revision {record['revision'] or 'unknown'}; {record['date']}; "
            f"rounds: {record['rounds']}",
            record["command"],
        )
        row = groups.setdefault(where, {}).setdefault(record["system"], {})
        row[record["measure"]] = record
    out = []
    for (title, circumstances, command), rows in groups.items():
        kinds = [kind for kind in MEASURES if any(kind in row for row in rows.values())]
        out += [f"**{title}**", ""]
        heads = ["system"]
        for kind in kinds:
            heads += [f"{kind}, {MEASURES[kind][0]}", f"to {STOCK}"]
        lines = [
            [label(name), *(cell for kind in kinds for cell in _cells(row.get(kind)))]
            for name, row in rows.items()
        ]
        out.append(markdown_table(Grid(heads, lines)))
        wanted = ", ".join(f"{kind} {MEASURES[kind][1]}" for kind in kinds)
        out += ["", f"Median (quartiles). To {STOCK}: median of the rounds' ratios; {wanted}."]
        out += ["", *_remarks(rows)]
        out += [f"{circumstances}; `{command}`", ""]
    return "\n".join(out)


def _remarks(rows: dict[str, dict[str, dict[str, Any]]]) -> list[str]:
    """A list of what systems chose for themselves and how many of their outputs are another's."""
    found = []
    for name, row in rows.items():
        for record in row.values():
            said = [record["setting"]] if record.get("setting") else []
            if "equal" in record:
                equal = f"{record['equal']:,} of {record['compared']:,} translations are those of"
                said.append(f"{equal} {label(record['equal_to'])}")
            if said:
                found.append(f"- {label(name)}: {'; '.join(said)}.")
    return [*found, ""] if found else []


def _cells(record: dict[str, Any] | None) -> list[str]:
    """The value and the ratio, each with its quartiles."""
    if record is None:
        return ["", ""]
    digits = 1 if record["median"] >= 10 else 3

    def show(prefix: str, places: int) -> str:
        if f"{prefix}median" not in record:
            return ""
        middle, low, high = (record[f"{prefix}{key}"] for key in ("median", "low", "high"))
        return f"{middle:.{places}f} ({low:.{places}f}-{high:.{places}f})"

    return [show("", digits), show("ratio_", 2)]
