"""Results in comparable groups: within one, test, data and model differ in nothing but the system
and the seed. How a system was trained may differ, as its recipe may; a table says where.
"""

from __future__ import annotations

import dataclasses
import shlex
from ast import literal_eval
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from ..errors import UserError
from .commands import training_options, words_of
from .records import Result, system_of

# The system that the others are compared with.
BASELINE = "sinusoidal"
_OVERRIDES = "--model-overrides"
# Beside position_*: what a model can be told of its positions when it decodes.
_OF_POSITIONS = ("beyond_table", "linformer_k", "max_source_positions", "max_target_positions")


@dataclass(frozen=True)
class Conditions:
    """What all results of a group have in common."""

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
    def details(self) -> str:
        """The rest, in words; without the references."""
        checkpoint = self.checkpoint
        if self.averaged > 1:
            checkpoint += f" (average of {self.averaged})"
        size = [f"size {self.size}"] if self.size else []
        parts = [
            f"trained on {self.corpus}",
            *size,
            *self.model.split(),
            f"{self.sentences:,} sentences",
            f"beam {self.beam}",
            f"length penalty {self.lenpen} ({self.length_penalty})",
            checkpoint,
            *([f"subwords {self.subwords}"] if self.subwords != "bpe" else []),
            *([f"source: {self.source_mended}"] if self.source_mended else []),
            *([f"options {self.options}"] if self.options else []),
        ]
        return ", ".join(parts)


@dataclass(frozen=True)
class Line:
    """One system with all its seeds, in their order; its numbers are means of the seeds."""

    name: str
    system: str
    results: tuple[Result, ...]

    @property
    def bleu(self) -> float:
        return fmean(result.bleu for result in self.results)

    @property
    def several_seeds(self) -> bool:
        return len(self.results) > 1

    @property
    def chrf(self) -> float:
        return fmean(result.chrf for result in self.results)

    @property
    def roles(self) -> float | None:
        """Role accuracy, mean of the seeds; None where the test set has no twins."""
        known = [result.roles for result in self.results if result.roles is not None]
        return fmean(known) if known else None

    @property
    def length_ratio(self) -> float | None:
        """Words over those of the references, mean of the seeds; None where it is not recorded."""
        known = [each.length_ratio for each in self.results if each.length_ratio is not None]
        return fmean(known) if len(known) == len(self.results) else None

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval of BLEU over sentences, mean of the seeds."""
        return fmean(result.bleu_ci for result in self.results)


@dataclass(frozen=True)
class Group:
    """Lines that may be compared, best first.

    ``baseline`` is there even where it is not one of the lines that were asked for.
    """

    conditions: Conditions
    lines: tuple[Line, ...]
    baseline: Line | None
    title: str

    @property
    def results(self) -> list[Result]:
        return [result for line in self.lines for result in line.results]

    def gain(self, line: Line) -> float | None:
        """BLEU of the line minus that of the baseline; None where there is no baseline."""
        return None if self.baseline is None else line.bleu - self.baseline.bleu

    @cached_property
    def trained_otherwise(self) -> dict[str, str]:
        """Line's name -> where its training differs from the baseline's in more than positions,
        ``--lr 0.003``; of lines where it does, as far as both commands are known.
        """
        if self.baseline is None or not self.baseline.results[0].train_command:
            return {}
        usual = training_options(self.baseline.results[0].train_command)
        found = {}
        for line in self.lines:
            command = line.results[0].train_command
            own = training_options(command) if command else usual
            options = [
                f"{name} {own[name]}" if name in own else f"no {name}"
                for name in sorted({*usual, *own})
                if usual.get(name) != own.get(name) and not _may_differ(name)
            ]
            if options:
                found[line.name] = ", ".join(options)
        return found


def encoding_of(result: Result) -> str:
    """Its positions, in words, with what the model was told of them when it decoded: an option by
    ``--model-overrides`` is as much the system's as one of its training.
    """
    own = sorted(f"{key}={value}" for key, value in _overrides(result)[0].items())
    return " ".join([result.positions, *own])


def _overrides(result: Result) -> tuple[dict[str, object], str]:
    """Overrides of positions, and the options of the search without them."""
    try:
        words = words_of(result.options, _OVERRIDES)
        place = words.index(_OVERRIDES)
        given = dict(literal_eval(words[place + 1]))
    except (UserError, ValueError, SyntaxError, TypeError, IndexError):
        # None, or of no model of ours.
        return {}, result.options
    ordered = {str(key): given[key] for key in sorted(given, key=str)}
    own = {key: value for key, value in ordered.items() if _is_of_positions(key)}
    rest = {key: value for key, value in ordered.items() if key not in own}
    words[place : place + 2] = [_OVERRIDES, repr(rest)] if rest else []
    return own, shlex.join(words)


def _is_of_positions(key: str) -> bool:
    return key in _OF_POSITIONS or key.startswith("position_")


def _may_differ(option: str) -> bool:
    """Whether an option of a training says which system it is of."""
    of_positions = _is_of_positions(option.lstrip("-").replace("-", "_"))
    return of_positions or option in ("the command", "--arch")


def size_of(result: Result) -> str:
    """``diet_rel_tiny`` -> ``tiny``; empty for an architecture without one of our sizes."""
    return result.arch[len(system_of(result.arch)) :].lstrip("_")


def _conditions(result: Result) -> Conditions:
    same = {field.name for field in dataclasses.fields(Conditions)} - {"size", "lenpen", "options"}
    tried = [each.partition(":")[0] for each in result.lenpen_tried.split()]
    lenpen = f"chosen on the validation set from {' '.join(tried)}" if tried else str(result.lenpen)
    own = {name: getattr(result, name) for name in same}
    options = _overrides(result)[1]
    return Conditions(size=size_of(result), lenpen=lenpen, options=options, **own)


def _name(result: Result) -> str:
    """The architecture, unless the result was given a name of its own."""
    usual = result.system == system_of(result.arch)
    return result.arch if usual else f"{result.system} ({result.arch})"


def group(results: Iterable[Result]) -> list[Group]:
    """Sorts results into groups, in the order of their first results.

    Results are seeds of one line where system, architecture and the encoding's options, those of
    decoding among them, are the same. Raises UserError if two claim the same place, or are models
    of different sizes.
    """
    places: dict[Conditions, dict[tuple[str, str, str], list[Result]]] = {}
    for result in results:
        line = (result.system, result.arch, encoding_of(result))
        seeds = places.setdefault(_conditions(result), {}).setdefault(line, [])
        if any(other.seed == result.seed for other in seeds):
            raise UserError(
                f"two results of {_name(result)}, seed {result.seed}, {result.test_set}; give one "
                "of them a name of its own (SYSTEM), or another folder"
            )
        if any(other.parameters != result.parameters for other in seeds):
            raise UserError(
                f"{_name(result)}, {result.test_set}, seed {result.seed}: {result.parameters:,} "
                f"parameters, other seeds have {seeds[0].parameters:,}; give one of the models a "
                "name of its own (SYSTEM), or another folder"
            )
        seeds.append(result)
    groups = []
    titles = Counter(_title(conditions) for conditions in places)
    for conditions, lines in places.items():
        ordered = _lines(list(lines.values()))
        # The one that was told the least of its positions when it decoded.
        of_baseline = [line for line in ordered if line.system == BASELINE]
        baseline = min(
            of_baseline, key=lambda line: len(_overrides(line.results[0])[0]), default=None
        )
        title = _title(conditions)
        if titles[title] > 1:  # different references under the same name
            title += f", references {conditions.references_sha256[:8]}"
        groups.append(Group(conditions, ordered, baseline, title))
    return groups


def _title(conditions: Conditions) -> str:
    return f"{conditions.heading}, {conditions.details}"


def _lines(lines: list[list[Result]]) -> tuple[Line, ...]:
    """Best first. Of a name that would stand there twice, what they do not share is a part."""
    encodings: dict[str, list[list[str]]] = {}
    for results in lines:
        encodings.setdefault(_name(results[0]), []).append(encoding_of(results[0]).split())
    found = []
    for results in lines:
        name = _name(results[0])
        shared = set.intersection(*map(set, encodings[name]))
        own = [word for word in encoding_of(results[0]).split() if word not in shared]
        name += f" [{' '.join(own)}]" if own else ""
        ordered = tuple(sorted(results, key=lambda result: result.seed))
        found.append(Line(name, ordered[0].system, ordered))
    return tuple(sorted(found, key=lambda line: -line.bleu))
