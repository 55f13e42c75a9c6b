"""What lies in the folder of results beside the rows, as far as it is there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..evaluation.kept import kept_hypotheses
from ..evaluation.records import read_results
from ..evaluation.sentences import Kept, read_sentences


@dataclass(frozen=True)
class Speeds:
    """Of one run of the side-by-side benchmark: sentences a second, by system."""

    where: str
    by_system: Mapping[str, float]


@dataclass(frozen=True)
class Learning:
    """Validation perplexity of one training after so many updates."""

    name: str
    system: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Beside:
    """``hypotheses``: of the sentences whose texts are kept, by the keys of their counts.

    ``speeds``: by the size of the models. ``learning``: by what was trained.
    """

    sentences: Kept = field(default_factory=lambda: Kept({}, {}))
    hypotheses: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    speeds: Mapping[str, Speeds] = field(default_factory=dict)
    learning: Mapping[str, Sequence[Learning]] = field(default_factory=dict)


def read_beside(files: Sequence[Path]) -> Beside:
    """Beside files of results of translation. Raises UserError for what cannot be read."""
    folders = list(dict.fromkeys(path.parent for path in files))
    kept = read_sentences(files)
    hypotheses = {}
    for path in files:
        for row in read_results(path):
            key = row.hypotheses_sha256, row.references_sha256
            if key in kept.counts:
                lines = kept_hypotheses(path.parent, row)
                hypotheses[key] = [lines[n] for n in kept.texts[row.references_sha256].numbers]
    return Beside(kept, hypotheses, _speeds(folders), _learning(folders))


def _speeds(folders: Sequence[Path]) -> dict[str, Speeds]:
    """Decoding, of each size the run that timed most systems."""
    runs: dict[tuple[str, str, Path], dict[str, dict[str, Any]]] = {}
    for folder in folders:
        for path in sorted(folder.glob("benchmark/*.jsonl")):
            for row in rows_of(path, ("size", "system", "measure", "median", "machine", "threads")):
                if row["measure"] == "decode":
                    run = runs.setdefault((row["size"], row.get("command", ""), path), {})
                    run[row["system"]] = row
    found: dict[str, Speeds] = {}
    for (size, _, _), run in runs.items():
        if size not in found or len(run) > len(found[size].by_system):
            row = next(iter(run.values()))
            where = f"{row['machine']}, {row['threads']} threads"
            found[size] = Speeds(where, {name: float(r["median"]) for name, r in run.items()})
    return found


def _learning(folders: Sequence[Path]) -> dict[str, list[Learning]]:
    """By file: ``curves/multi30k.jsonl`` is multi30k, ``mlm/curves.jsonl`` mlm."""
    found: dict[str, list[Learning]] = {}
    for folder in folders:
        for path in sorted([*folder.glob("curves/*.jsonl"), *folder.glob("*/curves.jsonl")]):
            rows = list(rows_of(path, ("system", "points")))
            names = []
            for row in rows:
                name, segments = str(row.get("name") or row["system"]), row.get("segments", "none")
                names.append(name if segments == "none" else f"{name}, segments {segments}")
            for name, row in zip(names, rows, strict=True):
                name += f" {row.get('seed')}" if names.count(name) > 1 else ""
                try:
                    points = [(int(p[0]), float(p[2])) for p in row["points"] if p[2] is not None]
                except (IndexError, TypeError, ValueError):
                    raise UserError(f"{path}: points of {name} are no numbers") from None
                if points:
                    what = path.parent.name if path.stem == "curves" else path.stem
                    found.setdefault(what, []).append(Learning(name, row["system"], points))
    return found


def rows_of(path: Path, needed: Sequence[str]) -> Iterator[dict[str, Any]]:
    """JSON lines of another command. Raises UserError naming the file and the line."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({error})") from None
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line) if line else None
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}, line {number}: not JSON ({error})") from None
        if row is not None:
            if not isinstance(row, dict) or any(name not in row for name in needed):
                raise UserError(f"{path}, line {number}: no {', '.join(needed)}; write it again")
            yield row
