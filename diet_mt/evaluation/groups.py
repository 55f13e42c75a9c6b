"""Results in comparable groups: equal in everything but the system, its training and the seed."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ..system.errors import UserError
from .options import Option, assignments, comparable, shell
from .records import Result, encoding_text, system_of

# The system that the others are compared with.
BASELINE = "sinusoidal"
# Besides position_*: options of positions that decoding can override.
_OF_POSITIONS = ("beyond_table", "linformer_k", "max_source_positions", "max_target_positions")


@dataclass(frozen=True)
class Conditions:
    """Properties that all results of a group share."""

    test_set: str
    direction: str
    corpus: str  # trained on
    size: str  # of the model: tiny, base, big; empty for an architecture of fairseq's own
    model: str  # options beyond the size
    sentences: int
    beam: int
    lenpen: str  # or those that the validation set has chosen from
    length_penalty: str
    checkpoint: str
    averaged: int
    references_sha256: str
    options: str  # others of the search, but for positions
    subwords: str
    source_mended: str

    @property
    def heading(self) -> str:
        return f"{self.test_set}, {self.direction}"

    @property
    def title(self) -> str:
        """The conditions in words, without the references."""
        average = f" (average of {self.averaged})" if self.averaged > 1 else ""
        normalized = self.source_mended.replace(" lines", "")
        parts = [
            self.heading,
            f"trained on {self.corpus}",
            f"size {self.size}" if self.size else "",
            *self.model.split(),
            f"{self.sentences:,} sentences" if self.sentences else "",
            f"beam {self.beam}",
            f"length penalty {self.lenpen} ({self.length_penalty})",
            f"{self.checkpoint}{average}",
            f"subwords {self.subwords}" if self.subwords != "bpe" else "",
            f"source lines normalized: {normalized}" if normalized else "",
            f"options {self.options}" if self.options else "",
        ]
        return ", ".join(filter(None, parts))


@dataclass(frozen=True)
class Line:
    """One system with all its seeds, in their order."""

    name: str
    system: str
    results: tuple[Result, ...]

    def mean(self, field: str) -> float | None:
        """The mean of a field over the seeds; None where no seed has it."""
        values = [getattr(result, field) for result in self.results]
        values = [value for value in values if value is not None]
        return fmean(values) if values else None

    @property
    def bleu(self) -> float:
        return fmean(result.bleu for result in self.results)


@dataclass(frozen=True)
class Group:
    """Comparable lines, best first, and the baseline, even if filters omit it from the lines."""

    conditions: Conditions
    lines: tuple[Line, ...]
    baseline: Line | None
    title: str

    @property
    def results(self) -> list[Result]:
        return [result for line in self.lines for result in line.results]

    def trained_otherwise(self) -> dict[str, str]:
        """Line's name -> options of its training, other than positions, that differ from the
        baseline's, ``--lr 0.003``.
        """
        usual = comparable(self.baseline.results[0].training) if self.baseline else {}
        differing = {}
        for line in self.lines if usual else ():
            own = comparable(line.results[0].training) or usual
            names = [name for name in sorted({*usual, *own}) if usual.get(name) != own.get(name)]
            options = [_shown(name, own) for name in names if not _is_of_system(name)]
            if options:
                differing[line.name] = ", ".join(options)
        return differing


def _shown(name: str, options: dict[str, object]) -> str:
    if name not in options:
        return f"no {name}"
    return name if options[name] is True else f"{name} {options[name]}"


def _is_of_system(option: str) -> bool:
    """Whether an option of a training is part of the system."""
    of_positions = _is_of_positions(option.lstrip("-").replace("-", "_"))
    return of_positions or option in ("the command", "--arch")


def _is_of_positions(name: str) -> bool:
    return name in _OF_POSITIONS or name.startswith("position_")


def _overrides(result: Result, *, of_positions: bool) -> dict[str, Option]:
    """Overrides of positions, part of the system; or others, a condition of the group."""
    pairs = sorted(result.overrides.items())
    return {name: value for name, value in pairs if _is_of_positions(name) == of_positions}


def positions_in(result: Result) -> dict[str, object]:
    """Its positions, with those that ``--model-overrides`` changed for decoding."""
    return {**result.positions, **_overrides(result, of_positions=True)}


def encoding_of(result: Result) -> str:
    """The same as text, ``rotary scale=head position_scaling=ntk``."""
    return encoding_text(positions_in(result))


def size_of(result: Result) -> str:
    """``diet_rel_tiny`` -> ``tiny``; empty for an architecture without one of our sizes."""
    return result.arch[len(system_of(result.arch)) :].lstrip("_")


def _conditions(result: Result) -> Conditions:
    tried = [each.partition(":")[0] for each in result.lenpen_tried.split()]
    lenpen = f"chosen on the validation set from {' '.join(tried)}" if tried else str(result.lenpen)
    others = _overrides(result, of_positions=False)
    own: dict[str, Any] = {
        "size": size_of(result),
        "model": assignments(result.model),
        "lenpen": lenpen,
        "options": shell({**({"model-overrides": others} if others else {}), **result.options}),
    }
    names = (field.name for field in dataclasses.fields(Conditions))
    own |= {name: getattr(result, name) for name in names if name not in own}
    return Conditions(**own)


def group(results: Iterable[Result]) -> list[Group]:
    """Groups results, in the order of their first ones. Raises UserError for ambiguous seeds.

    Results are seeds of one line where system, architecture and options of the encoding are equal.
    """
    places: dict[Conditions, dict[tuple[str, str, str], list[Result]]] = {}
    for result in results:
        line = (result.system, result.arch, encoding_of(result))
        seeds = places.setdefault(_conditions(result), {}).setdefault(line, [])
        sizes = {each.parameters for each in (*seeds, result)}
        if len(sizes) > 1 or any(other.seed == result.seed for other in seeds):
            which = f"{_name(result)}, seed {result.seed}, {result.test_set}"
            numbers = f" of {sorted(sizes)} parameters" if len(sizes) > 1 else ""
            raise UserError(f"two results of {which}{numbers}; rename one (--system)")
        seeds.append(result)
    groups = []
    titles = Counter(conditions.title for conditions in places)
    for conditions, lines in places.items():
        ordered = _lines(list(lines.values()))
        # The baseline with the fewest overrides.
        baseline = min(
            (line for line in ordered if line.system == BASELINE),
            key=lambda line: len(_overrides(line.results[0], of_positions=True)),
            default=None,
        )
        title = conditions.title
        if titles[title] > 1:  # different references under the same name
            title += f", references {conditions.references_sha256[:8]}"
        groups.append(Group(conditions, ordered, baseline, title))
    return groups


def _name(result: Result) -> str:
    """The architecture, unless the result was given a name of its own."""
    usual = result.system == system_of(result.arch)
    return result.arch if usual else f"{result.system} ({result.arch})"


def _lines(lines: list[list[Result]]) -> tuple[Line, ...]:
    """Best first. Equal names are completed by the options in which their encodings differ."""
    encodings: dict[str, list[list[str]]] = {}
    for results in lines:
        encodings.setdefault(_name(results[0]), []).append(encoding_of(results[0]).split())
    named = []
    for results in lines:
        name = _name(results[0])
        shared = set.intersection(*map(set, encodings[name]))
        own = [word for word in encoding_of(results[0]).split() if word not in shared]
        name += f" [{' '.join(own)}]" if own else ""
        ordered = tuple(sorted(results, key=lambda result: result.seed))
        named.append(Line(name, ordered[0].system, ordered))
    return tuple(sorted(named, key=lambda line: -line.bleu))
