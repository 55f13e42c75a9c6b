"""The table of rows of ``diet-mt bench speed``, as Markdown.

python results/benchmark/table.py results/benchmark/*.jsonl > results/benchmark.md
"""

import sys
from pathlib import Path

from diet_mt.bench.rows import circumstances, read_records
from diet_mt.report.blocks import Table, markdown_table

KEYS = ("size", "system", "measure", "median", "command")
MEASURES = ("train", "forward", "decode")


def label(system):
    name, _, how = system.partition(":")
    how = "fairseq's search" if how == "fairseq" else how
    return f"{name} ({how})" if how else name


def cells(record):
    """Value and ratio, each with its quartiles."""
    for prefix, digits in ("", 1 if record.get("median", 0) >= 10 else 3), ("ratio_", 2):
        three = [record.get(f"{prefix}{name}") for name in ("median", "low", "high")]
        yield "" if None in three else "{} ({}-{})".format(*(f"{v:.{digits}f}" for v in three))


def work(load):
    """Of a turn: batches of so many tokens or sentences, source and target lengths."""
    lengths = ", ".join(f"{source}+{target}" for source, target in load.get("lengths", []))
    sizes = [f"{load[unit]:,} {unit}" for unit in ("tokens", "sentences") if unit in load]
    return f"; batches of {sizes[0]}{lengths and f', lengths {lengths}'}" if sizes else ""


def on_gpu(row):
    """Peak of memory and seconds of set-up, of rows of one measure."""
    for record in row.values():
        if "peak_bytes" in record:
            yield from (f"{record['peak_bytes'] / 2**30:.1f}", f"{record['setup']:.0f}")


def notes(record):
    remarks = [record["setting"]] if record.get("setting") else []
    if "equal" in record:
        equal = f"{record['equal']:,} of {record['compared']:,} translations equal those of"
        remarks.append(f"{equal} {label(record['equal_to'])}")
    return [f"- {label(record['system'])}: {'; '.join(remarks)}."] if remarks else []


def table(records):
    """Of one size, machine and command."""
    first = {record["measure"]: record for record in reversed(records)}
    kinds = [kind for kind in MEASURES if kind in first]
    systems = {}
    for record in records:
        systems.setdefault(record["system"], {})[record["measure"]] = record
    heads = ["system"]
    for kind in kinds:
        heads += [f"{kind}, {first[kind]['unit']}", "to stock"]
    some = records[0]
    heads += ["peak, GiB", "set-up, s"] if "peak_bytes" in some else []
    rows = [
        [label(name), *(cell for kind in kinds for cell in cells(row.get(kind, {}))), *on_gpu(row)]
        for name, row in systems.items()
    ]
    turns = ", ".join(f"{kind} {first[kind]['sentences']:,}" for kind in kinds)
    some["precision"] = "/".join(dict.fromkeys(record["precision"] for record in records))
    title = f"{some['size']}, {some['machine']}, {some['precision']}{work(some.get('load', {}))}"
    yield f"**{title}; sentences in a turn: {turns}**"
    yield f"\n{markdown_table(Table(heads, rows))}\n"
    yield f"Median (quartiles). To {some.get('over', 'stock')}: median of the rounds' ratios.\n"
    listed = [line for row in systems.values() for record in row.values() for line in notes(record)]
    yield from [*listed, ""] if listed else []
    yield f"rounds: {some['rounds']}; {circumstances(some)}\n"


COUNTS = ("forward", "backward", "update", "operators", "views", "waits", "waits_in_passes")


def operators(records):
    """Of one size and command."""
    some = records[0]
    heads = ["system", "precision", *(name.replace("_", " ") for name in COUNTS)]
    rows = [
        [record["system"], record["precision"], *(f"{record[name]:,}" for name in COUNTS)]
        for record in records
    ]
    yield f"**{some['size']}: operators of a training step, {some['tokens']:,} tokens**"
    yield f"\n{markdown_table(Table(heads, rows))}\n"
    yield (
        "Counts, not times: what fairseq's trainer dispatches without a GPU, on a device with "
        "a GPU's branches. Most operators launch one kernel; views and allocations, which launch "
        "none, are counted separately. Waits: reads from the device or copies to it; in passes: in "
        "the forward and backward pass.\n"
    )
    about = f"revision {some['revision']}; {some['date']}; `{some['command']}`"
    yield f"torch {some['torch']}; {some['fairseq']}; {about}\n"


def page(files):
    groups = {}
    for record in read_records(files, KEYS):
        if record["measure"] == "operators":
            groups.setdefault((operators, record["size"], record["command"]), []).append(record)
            continue
        load = record.get("load")
        # Systems of one load differ in precision.
        shown = circumstances({**record, "precision": ""} if load else record)
        kind = record["measure"] if load else ""
        key = table, record["size"], record["rounds"], shown, kind, str(load)
        groups.setdefault(key, []).append(record)
    return "\n".join(line for key, records in groups.items() for line in key[0](records))


if __name__ == "__main__":
    print(page([Path(name) for name in sys.argv[1:]]), end="")
