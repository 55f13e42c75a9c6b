"""Scores of encoders on GLUE and XTREME, and the paper's (tables 2, 3, 5, 8 and 9).

Chen et al. 2021, table 2: "the median of the maximum accuracy over all checkpoints among five
runs". A row is one run at its best checkpoint. Scores are medians over the seeds, for the setting
(learning rate, epochs, batch size) with the best median. For zero-shot tasks, settings and
checkpoints are chosen on the English dev set, and a score is the median over the seeds of the mean
over the languages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import NamedTuple

from scipy import stats

from ..evaluation.options import assignments, shell
from ..evaluation.records import TaskResult
from ..system.errors import UserError
from .blocks import Block, Folded, Heading, Items, Note, Table
from .published import AVERAGE, GLUE, XTREME, PublishedRow, published_row, source

PAPER = "paper: "


@dataclass(frozen=True)
class Score:
    """A column of a table: a metric of a task on one split, or on the splits of all languages."""

    title: str
    task: str
    split: str  # a prefix, with ``all_languages``
    chosen_on: tuple[str, str]  # task and split whose main metric chooses the setting
    metric: str = ""  # default: the main metric
    all_languages: bool = False

    def holds(self, result: TaskResult) -> bool:
        if result.task != self.task or self.metric not in ("", *result.metrics):
            return False
        begins = self.all_languages and result.split.startswith(self.split)
        return begins or result.split == self.split

    def value(self, result: TaskResult) -> float:
        return result.metrics[self.metric] if self.metric else result.score


def _glue(title: str, split: str = "valid") -> Score:
    """A column of GLUE. ``title``: a task, optionally followed by a metric."""
    task, _, metric = title.removesuffix("-mm").partition(" ")
    return Score(title, task, split, (task, "valid"), metric.lower())


# The paper's columns, which form its average; then the other tasks and metrics of GLUE.
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

# Heading, legend, the paper's columns and other columns of each table.
_TABLES = {
    GLUE: (
        "GLUE, dev sets",
        "CoLA: Matthews' correlation; STS-B: Spearman's correlation; others: accuracy, unless the "
        "column names another metric. Each run counts with its best checkpoint on the dev set "
        "(MNLI: matched), each setting with the median of its seeds, each system with its best "
        "setting by the main metric. Runs without segments count in every row of their pretrained "
        "model.",
        GLUE_COLUMNS,
        MORE_GLUE_COLUMNS,
    ),
    XTREME: (
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
    """The median over the seeds, 0 to 100, of results of one setting."""

    column: Score
    results: Sequence[TaskResult]

    @property
    def by_seed(self) -> dict[int, float]:
        values: dict[int, list[float]] = {}
        for each in self.results:
            values.setdefault(each.seed, []).append(self.column.value(each))
        return {seed: fmean(values[seed]) for seed in sorted(values)}

    @property
    def value(self) -> float:
        return median(self.by_seed.values())

    @property
    def setting(self) -> Setting:
        return _setting(self.results[0])

    def by_language(self) -> dict[str, str]:
        """Language -> its own median, as text."""
        names = {each.language for each in self.results}
        own = {n: [each for each in self.results if each.language == n] for n in names}
        return {name: str(replace(self, results=results)) for name, results in own.items()}

    def __str__(self) -> str:
        values, half = list(self.by_seed.values()), ""
        if (n := len(values)) > 1:
            half = f" ± {stats.t.ppf(0.975, n - 1) * stats.sem(values):.1f}"
        return f"{self.value:.1f}{half} ({n})"


@dataclass(frozen=True, eq=False)
class Entrant:
    """Results of one pretrained checkpoint with one kind of segments."""

    results: Sequence[TaskResult]
    apart: str = ""  # options that distinguish models of the same name and size

    @property
    def name(self) -> str:
        first = self.results[0]
        size = f"({first.arch.rpartition('_')[2]})" if first.arch else ""
        return " ".join(word for word in (first.system, self.apart, size) if word)

    @property
    def segments(self) -> str:
        return self.results[0].segments

    @property
    def published(self) -> dict[str, PublishedRow]:
        """Table -> row of the paper for the model."""
        first = self.results[0]
        rows = {t: published_row(t, first.system, first.segments, first.positions) for t in _TABLES}
        return {table: row for table, row in rows.items() if row}

    def describe(self) -> str:
        """Description of size and pretraining."""
        first = self.results[0]
        size = f"{first.parameters / 1e6:.1f} M parameters"
        if not first.pretrained_sha256:
            return f"{size}, not pretrained"
        text = f"{size}, pretrained for {first.pretrain_updates:,} updates"
        perplexity = first.pretrain_perplexity  # three digits, as its loss has three decimals
        return f"{text}, perplexity {perplexity:.3g}" if perplexity else text


def entrants(results: Iterable[TaskResult]) -> list[Entrant]:
    """Results grouped by system, segments, options and pretrained checkpoint, in order of rows.

    The paper fine-tunes some tasks with segments and others without (appendix A), so results of a
    model without segments count with each kind of segments that it has on other tasks.
    """
    models: dict[tuple[object, ...], dict[str, list[TaskResult]]] = {}
    for result in results:
        options = tuple(sorted((name, repr(value)) for name, value in _options(result).items()))
        model = models.setdefault((result.system, options, result.pretrained_sha256), {})
        model.setdefault(result.segments, []).append(result)
    every = [rows for model in models.values() for rows in _with_plain(model)]
    return [Entrant(rows, _apart(rows, every)) for rows in every]


def _with_plain(model: Mapping[str, list[TaskResult]]) -> Iterator[list[TaskResult]]:
    """Results with each kind of segments, and those without segments on other tasks."""
    segmented = {row.task for kind, rows in model.items() if kind != "none" for row in rows}
    for kind, rows in model.items():
        plain = [row for row in model.get("none", ()) if row.task not in segmented]
        if kind != "none":
            yield rows + plain
        elif not segmented or len(plain) < len(rows):
            yield rows


def _options(result: TaskResult) -> dict[str, object]:
    """Architecture and options of the whole model, and its updates of pretraining."""
    updates = {"pretrain-updates": result.pretrain_updates} if result.pretrain_updates else {}
    return {"arch": result.arch, **updates, **result.positions, **result.model}


def _apart(rows: Sequence[TaskResult], every: Iterable[Sequence[TaskResult]]) -> str:
    own, key = _options(rows[0]), (rows[0].system, rows[0].arch)
    alike = [_options(each[0]) for each in every if (each[0].system, each[0].arch) == key]
    names = sorted({name for each in alike for name in each})
    differing = [name for name in names if len({repr(each.get(name)) for each in alike}) > 1]
    return " ".join(f"{name}={own[name]}" for name in differing if name in own)


def languages_of(column: Score, results: Iterable[TaskResult]) -> list[str]:
    """Languages in which all runs of a task were tested, so that means are comparable; empty for a
    column without languages. Raises :class:`UserError` if there is no common language.
    """
    runs: dict[tuple[object, ...], set[str]] = {}
    for result in filter(column.holds, results if column.all_languages else ()):
        model = result.system, result.segments, assignments(result.model), result.pretrained_sha256
        runs.setdefault((*model, _setting(result), result.seed), set()).add(result.language)
    common = sorted(set.intersection(*runs.values())) if runs else []
    if runs and not common:
        raise UserError(f"{column.task}: no language common to all runs; test them again")
    return common


def score(column: Score, entrant: Entrant, languages: Sequence[str] = ()) -> Cell | None:
    """One cell, or None without results; ``languages``: averaged over (default: all)."""
    mine = [each for each in entrant.results if column.holds(each)]
    mine = [each for each in mine if not languages or each.language in languages]
    if not mine:
        return None
    setting = _choose(column, entrant, {_setting(each) for each in mine})
    return Cell(column, [each for each in mine if _setting(each) == setting])


def _setting(result: TaskResult) -> Setting:
    return Setting(result.lr, result.epochs, result.batch)


def _choose(column: Score, entrant: Entrant, tried: set[Setting]) -> Setting:
    """The setting with the best median among those with the most seeds; of equal ones the first.

    Raises :class:`UserError` if several settings have no results to choose by.
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
    return max(seeds, key=lambda setting: (len(seeds[setting]), median(seeds[setting].values())))


def task_board(results: Sequence[TaskResult]) -> list[Block]:
    """The tables of GLUE and XTREME for which there are results."""
    every = entrants(results)
    blocks = [block for name in _TABLES for block in _blocks(name, every, results)]
    tables = [block for block in blocks if isinstance(block, Table)]
    if any(row[0].startswith(PAPER) for each in tables for row in each.rows):
        blocks.append(Note(f"paper: {source('tasks')}."))
    return blocks


def _blocks(name: str, every: Sequence[Entrant], results: Sequence[TaskResult]) -> list[Block]:
    """A table with its notes; empty without scores."""
    heading, legend, columns, more = _TABLES[name]
    languages = {each: languages_of(each, results) for each in (*columns, *more)}
    scored = [
        (entrant, {c: cell for c in languages if (cell := score(c, entrant, languages[c]))})
        for entrant in every
    ]
    scored = [(entrant, cells) for entrant, cells in scored if cells]
    if not scored:
        return []
    used = [column for column in languages if any(column in cells for _, cells in scored)]
    titles = [column.title for column in used] + [AVERAGE] * set(used).issuperset(columns)
    rows, details, commands = [], [], dict[str, None]()
    for entrant, cells in scored:
        own = {column.title: str(cell) for column, cell in cells.items()}
        if cells.keys() >= set(columns):
            own[AVERAGE] = f"{fmean(cells[column].value for column in columns):.1f}"
        rows.append(_row(entrant.name, entrant.segments, own, titles))
        paper = entrant.published.get(name)
        if paper and set(titles) & paper.scores.keys():
            texts = {title: f"{value:.1f}" for title, value in paper.scores.items()}
            rows.append(_row(f"{PAPER}{paper.name}", paper.segments, texts, titles))
        details.append(f"{entrant.name}, segments {entrant.segments}: {entrant.describe()}.")
        for column, cell in cells.items():
            seeds = ", ".join(f"{value:.2f} ({seed})" for seed, value in cell.by_seed.items())
            notes = sorted({note for result in cell.results for note in result.notes})
            details.append("; ".join([f"  {column.title}: {cell.setting}: {seeds}", *notes]))
            run = cell.results[0]
            commands |= dict.fromkeys(shell(o) for o in (run.training, run.evaluation) if o)
    tested = [f"{column.task} {' '.join(own)}" for column, own in languages.items() if own]
    over = f" Our languages: {'; '.join(dict.fromkeys(tested))}." if tested else ""
    by_language: list[Block] = []
    for column, names in languages.items():
        if names:
            own_rows = [
                _row(entrant.name, entrant.segments, cells[column].by_language(), names)
                for entrant, cells in scored
                if column in cells
            ]
            by_language += [Note(f"{column.title} by language:"), _table(own_rows, names)]
    return [
        Heading(heading),
        _table(rows, titles),
        Note(f"{legend}{over} In brackets: seeds; ±: half of the 95 % interval of their mean."),
        Items(details),
        *by_language,
        Folded("Commands, of one seed each", list(commands)),
    ]


def _row(name: str, segments: str, texts: Mapping[str, str], titles: Sequence[str]) -> list[str]:
    return [name, segments, *(texts.get(title, "") for title in titles)]


def _table(rows: Sequence[Sequence[str]], titles: Sequence[str]) -> Table:
    return Table(["system", "segments", *titles], rows, [False, False, *[True] * len(titles)])
