"""Scores of encoders on GLUE and XTREME, with the paper's (tables 2, 3, 5, 8 and 9).

Chen et al. 2021, table 2: "the median of the maximum accuracy over all checkpoints among five
runs". A row is one run at its best checkpoint, the maximum; the median over the seeds is taken
here, for the setting (learning rate, epochs, batch) with the best median. On zero-shot tasks the
setting is chosen on the English dev set, like checkpoints, and the score is the median over the
seeds of the mean over the languages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import NamedTuple

from ..evaluation.options import assignments, shell
from ..evaluation.records import TaskResult
from ..system.errors import UserError
from .blocks import Block, Folded, Heading, Items, Note, Table
from .published import AVERAGE, GLUE, TASKS, XTREME, published_row, source

PAPER = "paper: "


@dataclass(frozen=True)
class Score:
    """A metric of a task on one split, or on all splits that begin so: a column of a table.

    ``chosen_on``: task and split whose main metric chooses the setting; ``metric``: default the
    main one.
    """

    title: str
    task: str
    split: str
    chosen_on: tuple[str, str]
    metric: str = ""
    all_languages: bool = False

    def holds(self, result: TaskResult) -> bool:
        if result.task != self.task or self.metric not in ("", *result.metrics):
            return False
        return result.split == self.split or (
            self.all_languages and result.split.startswith(self.split)
        )

    def value(self, result: TaskResult) -> float:
        return result.metrics[self.metric] if self.metric else result.score


def _glue(title: str, split: str = "valid") -> Score:
    """``title``: a task, and a metric other than its main one."""
    task, _, metric = title.removesuffix("-mm").partition(" ")
    return Score(title, task, split, (task, "valid"), metric.lower())


# The paper's columns, which its average is over; then the rest of GLUE's tasks and metrics.
GLUE_COLUMNS = (
    *(_glue("MNLI"), _glue("MNLI-mm", "valid1")),
    *map(_glue, ("QQP", "QNLI", "SST-2", "CoLA", "STS-B")),
)
MORE_GLUE_COLUMNS = tuple(map(_glue, ("MRPC", "RTE", "WNLI", "MRPC F1", "QQP F1", "STS-B Pearson")))
_SQUAD = ("SQuAD", "valid")
_METRICS = (("", "f1"), (" EM", "exact_match"))
XTREME_COLUMNS = (
    Score("XNLI", "XNLI", "test", ("XNLI", "valid_en"), "accuracy", all_languages=True),
    *(
        Score(title + more, task, "test", _SQUAD, metric, all_languages=True)
        for title, task in (("XQuAD", "XQuAD"), ("MLQA", "MLQA"), ("TyDiQA", "TyDiQA-GoldP"))
        for more, metric in _METRICS
    ),
)
MORE_XTREME_COLUMNS = tuple(
    Score(f"SQuAD{more}", *_SQUAD, _SQUAD, metric) for more, metric in _METRICS
)


class _Table(NamedTuple):
    heading: str
    legend: str
    columns: tuple[Score, ...]
    more: tuple[Score, ...]


_TABLES = {
    GLUE: _Table(
        "GLUE, dev sets",
        "CoLA: Matthews' correlation; STS-B: Spearman's correlation; others: accuracy, unless the "
        "column names another metric. Each run counts with its best checkpoint on the dev set "
        "(MNLI: matched), each setting with the median of its seeds, each system with its best "
        "setting by the main metric. Runs without segments count in every row of their pretrained "
        "model.",
        GLUE_COLUMNS,
        MORE_GLUE_COLUMNS,
    ),
    XTREME: _Table(
        "Question answering and cross-lingual transfer",
        "XNLI: accuracy; others: F1 and exact match (EM). Fine-tuned in English; checkpoints and "
        "settings chosen on English dev sets (SQuAD: the column of that name); mean over the "
        "languages, then median over the seeds.",
        XTREME_COLUMNS,
        MORE_XTREME_COLUMNS,
    ),
}


class Setting(NamedTuple):
    """Hyperparameters tried for each system."""

    lr: float
    epochs: int
    batch: int

    def __str__(self) -> str:
        return f"lr {self.lr:g}, epochs {self.epochs}, batch {self.batch}"


@dataclass(frozen=True)
class Cell:
    """``value``: median of ``by_seed``, 0 to 100."""

    value: float
    by_seed: dict[int, float]
    setting: Setting
    results: tuple[TaskResult, ...]

    def __str__(self) -> str:
        return f"{self.value:.1f} ({len(self.by_seed)})"


@dataclass(frozen=True, eq=False)
class Entrant:
    """Results of one pretrained checkpoint with one kind of segments.

    ``apart``: options that tell its model from others of the same name and size.
    """

    results: tuple[TaskResult, ...]
    apart: str = ""

    @property
    def name(self) -> str:
        first = self.results[0]
        size = f"({first.arch.rpartition('_')[2]})" if first.arch else ""
        return " ".join(word for word in (first.system, self.apart, size) if word)

    @property
    def segments(self) -> str:
        return self.results[0].segments

    def describe(self) -> str:
        """Size and pretraining."""
        first = self.results[0]
        parts = [f"{first.parameters / 1e6:.1f} M parameters"]
        if not first.pretrained_sha256:
            return f"{parts[0]}, not pretrained"
        parts.append(f"pretrained for {first.pretrain_updates:,} updates")
        if first.pretrain_perplexity:
            # Computed from a loss of three decimals: three digits are known.
            decimals = 0 if first.pretrain_perplexity >= 100 else 1
            parts.append(f"perplexity {first.pretrain_perplexity:.{decimals}f}")
        return ", ".join(parts)


def entrants(results: Iterable[TaskResult]) -> list[Entrant]:
    """Results by system, segments, options and pretrained checkpoint, in their first order.

    The paper fine-tunes some tasks with segments and others as pretrained (appendix A): a model's
    results without segments count with every kind of segments that it has on other tasks.
    """
    models: dict[tuple[object, ...], dict[str, list[TaskResult]]] = {}
    for result in results:
        options = tuple(sorted((name, repr(value)) for name, value in _options(result).items()))
        model = models.setdefault((result.system, options, result.pretrained_sha256), {})
        model.setdefault(result.segments, []).append(result)
    every = [rows for model in models.values() for rows in _with_plain(model)]
    return [Entrant(tuple(rows), _apart(rows, every)) for rows in every]


def _with_plain(model: Mapping[str, list[TaskResult]]) -> Iterator[list[TaskResult]]:
    """Results by kind of segments, with those without segments on other tasks."""
    segmented = {row.task for kind, rows in model.items() if kind != "none" for row in rows}
    for kind, rows in model.items():
        plain = [row for row in model.get("none", ()) if row.task not in segmented]
        if kind != "none":
            yield rows + plain
        elif not segmented or len(plain) < len(rows):
            yield rows


def _options(result: TaskResult) -> dict[str, object]:
    """Of the whole model."""
    return {"arch": result.arch, **result.positions, **result.model}


def _apart(rows: Sequence[TaskResult], every: Iterable[Sequence[TaskResult]]) -> str:
    own, key = _options(rows[0]), (rows[0].system, rows[0].arch)
    alike = [_options(each[0]) for each in every if (each[0].system, each[0].arch) == key]
    names = sorted({name for each in alike for name in each})
    differing = [name for name in names if len({repr(each.get(name)) for each in alike}) > 1]
    return " ".join(f"{name}={own[name]}" for name in differing if name in own)


def languages_of(column: Score, results: Iterable[TaskResult]) -> tuple[str, ...]:
    """Languages in which every run of a task was tested: means over others are not comparable."""
    runs: dict[tuple[object, ...], set[str]] = {}
    for result in filter(column.holds, results):
        model = result.system, result.segments, assignments(result.model), result.pretrained_sha256
        runs.setdefault((*model, _setting(result), result.seed), set()).add(result.language)
    common = sorted(set.intersection(*runs.values())) if runs else []
    if runs and not common:
        raise UserError(f"{column.task}: no language common to all runs; test them again")
    return tuple(common)


def score(column: Score, entrant: Entrant, languages: Sequence[str] = ()) -> Cell | None:
    """One cell; None where nothing was measured. ``languages``: averaged over (default all)."""
    mine = [each for each in entrant.results if column.holds(each)]
    mine = [each for each in mine if not languages or each.language in languages]
    if not mine:
        return None
    setting = _choose(column, entrant, {_setting(each) for each in mine})
    return _cell(column, setting, [each for each in mine if _setting(each) == setting])


def _cell(column: Score, setting: Setting, results: Sequence[TaskResult]) -> Cell:
    by_seed = {
        seed: fmean(column.value(each) for each in results if each.seed == seed)
        for seed in sorted({each.seed for each in results})
    }
    return Cell(median(by_seed.values()), by_seed, setting, tuple(results))


def _setting(result: TaskResult) -> Setting:
    return Setting(result.lr, result.epochs, result.batch)


def _choose(column: Score, entrant: Entrant, tried: set[Setting]) -> Setting:
    """The setting with the best median among those with the most seeds; the first of equal ones.

    Raises UserError where several were tried and no result on ``chosen_on`` decides.
    """
    seeds: dict[Setting, dict[int, float]] = {}
    for each in entrant.results:
        if (each.task, each.split) == column.chosen_on and _setting(each) in tried:
            seeds.setdefault(_setting(each), {})[each.seed] = each.score
    if not seeds:
        if len(tried) == 1:
            return next(iter(tried))
        raise UserError(
            f"{column.task}: {len(tried)} settings of {entrant.name}, and no result on "
            f"{' '.join(column.chosen_on)} to choose by; give that file, too"
        )
    most = max(map(len, seeds.values()))
    complete = {setting: values for setting, values in seeds.items() if len(values) == most}
    return max(complete, key=lambda setting: median(complete[setting].values()))


# A row of a table, ours or the paper's: name, segments, and text by title of the column.
_Line = tuple[str, str, Mapping[str, str]]


def task_board(results: Sequence[TaskResult]) -> list[Block]:
    """The tables that the results have scores for."""
    every = entrants(results)
    blocks = [block for name in _TABLES for block in _blocks(name, every, results)]
    tables = [block for block in blocks if isinstance(block, Table)]
    if any(row[0].startswith(PAPER) for each in tables for row in each.rows):
        blocks.append(Note(f"paper: {source(TASKS)}."))
    return blocks


def _blocks(name: str, every: Sequence[Entrant], results: Sequence[TaskResult]) -> list[Block]:
    """One table with its notes; empty without any score."""
    heading, legend, columns, more = _TABLES[name]
    both = (*columns, *more)
    languages = {each: languages_of(each, results) for each in both if each.all_languages}
    cells = {
        entrant: {c: cell for c in both if (cell := score(c, entrant, languages.get(c, ())))}
        for entrant in every
    }
    cells = {entrant: own for entrant, own in cells.items() if own}
    if not cells:
        return []
    used = [column for column in both if any(column in own for own in cells.values())]
    titles = [column.title for column in used] + [AVERAGE] * set(used).issuperset(columns)
    lines = [line for entrant, own in cells.items() for line in _lines(name, entrant, own)]
    runs = [own.results[0] for entrant in cells for own in cells[entrant].values()]
    commands = dict.fromkeys(shell(o) for run in runs for o in (run.training, run.evaluation) if o)
    tested = [f"{column.task} {' '.join(own)}" for column, own in languages.items() if own]
    over = f" Our languages: {'; '.join(dict.fromkeys(tested))}." if tested else ""
    by_language: list[Block] = []
    for column in (column for column in used if column.all_languages):
        scored = [(entrant, own[column]) for entrant, own in cells.items() if column in own]
        own_lines = [_by_language(column, *each) for each in scored]
        by_language.append(Note(f"{column.title} by language:"))
        by_language.append(_table(own_lines, languages[column]))
    return [
        Heading(heading),
        _table([line for line in lines if set(titles) & line[2].keys()], titles),
        Note(f"{legend}{over} In brackets: seeds."),
        Items([item for entrant, own in cells.items() for item in _details(entrant, own)]),
        *by_language,
        Folded("Commands, of one seed each", list(commands)),
    ]


def _table(lines: Sequence[_Line], titles: Sequence[str]) -> Table:
    rows = [[*names, *(cells.get(title, "") for title in titles)] for *names, cells in lines]
    return Table(["system", "segments", *titles], rows, [False, False, *[True] * len(titles)])


def _lines(name: str, entrant: Entrant, cells: Mapping[Score, Cell]) -> Iterator[_Line]:
    """Our row, with an average where all columns of the paper are there, and the paper's."""
    own = {column.title: str(cell) for column, cell in cells.items()}
    columns = _TABLES[name].columns
    if cells.keys() >= set(columns):
        own[AVERAGE] = f"{fmean(cells[column].value for column in columns):.1f}"
    yield entrant.name, entrant.segments, own
    first = entrant.results[0]
    if row := published_row(name, first.system, first.segments, first.positions):
        scores = {title: f"{value:.1f}" for title, value in row.scores.items()}
        yield f"{PAPER}{row.name}", row.segments, scores


def _details(entrant: Entrant, cells: Mapping[Score, Cell]) -> Iterator[str]:
    """The scores that medians are of, and remarks on the data."""
    yield f"{entrant.name}, segments {entrant.segments}: {entrant.describe()}."
    for column, cell in cells.items():
        seeds = ", ".join(f"{value:.2f} ({seed})" for seed, value in cell.by_seed.items())
        notes = sorted({note for result in cell.results for note in result.notes})
        yield "; ".join([f"  {column.title}: {cell.setting}: {seeds}", *notes])


def _by_language(column: Score, entrant: Entrant, cell: Cell) -> _Line:
    """The median of each language, of the chosen setting."""
    results: dict[str, list[TaskResult]] = {}
    for result in cell.results:
        results.setdefault(result.language, []).append(result)
    values = {language: str(_cell(column, cell.setting, own)) for language, own in results.items()}
    return entrant.name, entrant.segments, values
