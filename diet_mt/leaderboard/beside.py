"""What lies in the folder of results beside the rows, as far as it is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..evaluation.commands import values_of
from ..evaluation.curves import LearningCurve
from ..evaluation.groups import Line, encoding_of
from ..evaluation.json_rows import read_dicts, read_rows
from ..evaluation.kept import kept_hypotheses
from ..evaluation.records import read_results
from ..evaluation.sentences import Kept, read_sentences


@dataclass(frozen=True)
class Speed:
    """Sentences a second, and their quartiles."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Speeds:
    """Of one run of the side-by-side benchmark, by the encoding with its options, as a result
    describes it. ``where``: data, machine, revision.
    """

    where: str
    by_encoding: Mapping[str, Speed]

    def of(self, line: Line) -> Speed | None:
        return self.by_encoding.get(encoding_of(line.results[0]))


@dataclass(frozen=True)
class Beside:
    """``hypotheses``: of the sentences whose texts are kept, by the keys of their counts.

    ``speeds``: by the size of the models and the corpus. ``learning``: by what was trained.
    """

    sentences: Kept = field(default_factory=lambda: Kept({}, {}))
    hypotheses: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    speeds: Mapping[tuple[str, str], Speeds] = field(default_factory=dict)
    learning: Mapping[str, Sequence[LearningCurve]] = field(default_factory=dict)


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


def _speeds(folders: Sequence[Path]) -> dict[tuple[str, str], Speeds]:
    """Decoding of real sentences, of each size and corpus the run that timed most encodings."""
    kinds: dict[str, type] = dict.fromkeys(("size", "system", "measure", "machine"), str)
    kinds |= {"median": float, "low": float, "high": float, "threads": int}
    more = dict.fromkeys(("positions", "command", "device", "precision", "revision"), str)
    runs: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    for folder in folders:
        for path in sorted(folder.glob("benchmark/*.jsonl")):
            for row in read_dicts(path, kinds, more):
                if row["measure"] == "decode" and row.get("positions"):
                    how = [row.get(name, "") for name in ("command", "device", "precision")]
                    runs.setdefault((row["size"], *how, path), []).append(row)
    found: dict[tuple[str, str], Speeds] = {}
    for run in runs.values():
        first = run[0]
        command = first.get("command", "")
        data = [Path(value) for value in values_of(command, "--data")]
        corpora = [each.parent.name if each.name == "bin" else each.name for each in data]
        key = first["size"], corpora[0] if corpora else ""
        speeds = {row["positions"]: _speed(row) for row in run}
        if key[1] and (key not in found or len(speeds) > len(found[key].by_encoding)):
            parts = [key[1], first["machine"], f"{first['threads']} threads"]
            parts += [f"revision {first['revision']}"] if first.get("revision") else []
            parts += _random(command, [row["system"] for row in run])
            length = first.get("decode_length")
            parts += [f"every translation {length} tokens long"] if length else []
            found[key] = Speeds(", ".join(parts), speeds)
    return found


def _random(command: str, systems: Sequence[str]) -> list[str]:
    """What to say where weights are random: of all ``systems``, or but those given weights."""
    given = [each.partition("=")[0] for each in values_of(command, "--checkpoint")]
    trained = [system for system in systems if system in given]
    if len(trained) == len(systems):
        return []
    return [f"weights random but for {', '.join(trained)}" if trained else "weights random"]


def _speed(row: Mapping[str, Any]) -> Speed:
    return Speed(*(float(row[name]) for name in ("median", "low", "high")))


def _learning(folders: Sequence[Path]) -> dict[str, list[LearningCurve]]:
    """By file: ``curves/multi30k.jsonl`` is multi30k, ``mlm/curves.jsonl`` mlm."""
    found: dict[str, list[LearningCurve]] = {}
    for folder in folders:
        for path in sorted([*folder.glob("curves/*.jsonl"), *folder.glob("*/curves.jsonl")]):
            what = path.parent.name if path.stem == "curves" else path.stem
            curves = read_rows(LearningCurve, path)
            found.setdefault(what, []).extend(each for each in curves if each.finite("perplexity"))
    return found
