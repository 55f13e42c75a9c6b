"""Scores of encoders: GLUE beside the paper's tables 2, 8 and 9, XTREME beside 3 and 5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Union

from ..blocks import Block, Commands, Grid, Heading, Items, Note
from ..evaluation.task_records import TaskResult
from .published import AVERAGE, GLUE, TASKS, XTREME, published_row, source
from .task_scores import (
    GLUE_COLUMNS,
    MORE_GLUE_COLUMNS,
    MORE_XTREME_COLUMNS,
    XTREME_COLUMNS,
    Entrant,
    Score,
    TaskColumn,
    entrants,
    languages_of,
    score,
)

PAPER = "paper: "
_HEADINGS = {GLUE: "GLUE, dev sets", XTREME: "Question answering and cross-lingual transfer"}
_LEGEND = {
    GLUE: "CoLA: Matthews' correlation; STS-B: Spearman's correlation; others: accuracy, where the "
    "column says nothing else. Each run counts with its best checkpoint on the dev set (MNLI: on "
    "the matched one), each setting with the median of its seeds, each system with its best "
    "setting, by the task's main metric. What was fine-tuned without segments counts in every row "
    "of its pretrained model.",
    XTREME: "XNLI: accuracy; others: F1 and exact match (EM). Trained in English; checkpoints and "
    "settings were chosen on English dev sets (SQuAD: the one shown, named below); then the mean "
    "over the languages, and of it the median over the seeds.",
}


def task_board(results: Sequence[TaskResult]) -> list[Block]:
    """All tables that the results have rows for; nothing without any."""
    found = entrants(results)
    blocks = [
        *_table(GLUE, GLUE_COLUMNS, MORE_GLUE_COLUMNS, found, results),
        *_table(XTREME, XTREME_COLUMNS, MORE_XTREME_COLUMNS, found, results),
    ]
    grids = [block for block in blocks if isinstance(block, Grid)]
    if any(row[0].startswith(PAPER) for grid in grids for row in grid.rows):
        blocks.append(Note(f"paper: {source(TASKS)}."))
    return blocks


Cells = dict[tuple[Entrant, TaskColumn], Union[Score, None]]


def _table(
    name: str,
    columns: Sequence[TaskColumn],
    more: Sequence[TaskColumn],
    found: Sequence[Entrant],
    results: Sequence[TaskResult],
) -> list[Block]:
    """One table with what has to be said under it; nothing where none of its columns has a score.

    Columns without any score of ours are left out.
    """
    both = (*columns, *more)
    languages = {each: languages_of(each, results) for each in both if each.all_languages}
    cells: Cells = {
        (entrant, column): score(column, entrant, languages.get(column, ()))
        for entrant in found
        for column in both
    }
    used = [column for column in both if any(cells[entrant, column] for entrant in found)]
    if not used:
        return []
    ours = [entrant for entrant in found if any(cells[entrant, column] for column in used)]
    details: list[str] = []
    for entrant in ours:
        mine = [(column, each) for column in used if (each := cells[entrant, column])]
        details += _details(entrant, mine)
    runs = [each.results[0] for each in cells.values() if each]  # one of each score
    commands = dict.fromkeys(command for run in runs for command in run.commands)
    return [
        Heading(_HEADINGS[name]),
        _grid(name, columns, used, ours, cells),
        Note(f"{_LEGEND[name]}{_tested(languages)} In brackets: seeds."),
        Items(details),
        *(_by_language(used, ours, cells) if name == XTREME else []),
        Commands("The commands, of one seed each", list(commands)),
    ]


def _grid(
    name: str,
    columns: Sequence[TaskColumn],
    used: Sequence[TaskColumn],
    ours: Sequence[Entrant],
    cells: Cells,
) -> Grid:
    """Each entrant, and under it the paper's row; with the average of ``columns`` if all are
    there.
    """
    average = all(column in used for column in columns)
    titles = [column.title for column in used] + ([AVERAGE] if average else [])
    rows = []
    for entrant in ours:
        values = [_cell(cells[entrant, column]) for column in used]
        if average:
            complete = [each.value for column in columns if (each := cells[entrant, column])]
            values.append(f"{fmean(complete):.1f}" if len(complete) == len(columns) else "")
        rows.append([_name(entrant), entrant.segments, *values])
        published = published_row(name, entrant.name, entrant.segments, entrant.options)
        if published and any(title in published.scores for title in titles):
            scores = published.scores
            theirs = [f"{scores[title]:.1f}" if title in scores else "" for title in titles]
            rows.append([f"{PAPER}{published.name}", published.segments, *theirs])
    return _flush_right(["system", "segments", *titles], rows)


def _flush_right(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Grid:
    """All but system and segments."""
    return Grid(heads, rows, [False, False, *[True] * (len(heads) - 2)])


def _tested(languages: dict[TaskColumn, tuple[str, ...]]) -> str:
    """A sentence: which languages our means are over. The paper's are over all of a collection."""
    by_task = {column.task: found for column, found in languages.items() if found}
    words = [f"{task} {' '.join(found)}" for task, found in by_task.items()]
    return f" Our languages: {'; '.join(words)}." if words else ""


def _name(entrant: Entrant) -> str:
    size = f"({entrant.arch.rpartition('_')[2]})" if entrant.arch else ""
    return " ".join(word for word in (entrant.name, entrant.apart, size) if word)


def _cell(found: Score | None) -> str:
    return f"{found.value:.1f} ({len(found.by_seed)})" if found else ""


def _details(entrant: Entrant, found: Sequence[tuple[TaskColumn, Score]]) -> list[str]:
    """Every score that a median is of, and what is particular about the data."""
    out = [f"{_name(entrant)}, segments {entrant.segments}: {entrant.describe()}."]
    for column, each in found:
        seeds = ", ".join(f"{value:.2f} ({seed})" for seed, value in each.by_seed.items())
        notes = sorted({note for result in each.results for note in result.notes})
        said = f"; {'; '.join(notes)}" if notes else ""
        out.append(f"  {column.title}: {each.setting}: {seeds}{said}")
    return out


def _by_language(
    used: Sequence[TaskColumn], ours: Sequence[Entrant], cells: Cells
) -> Iterator[Block]:
    """For each column a table with the median of each language, of the setting that was chosen."""
    for column in used:
        if not column.all_languages:
            continue
        found = [(entrant, each) for entrant in ours if (each := cells[entrant, column])]
        languages = found[0][1].languages
        rows = []
        for entrant, each in found:
            values = []
            for language in languages:
                of_it = tuple(row for row in each.results if row.language == language)
                only = Entrant(entrant.name, entrant.segments, entrant.arch, of_it)
                values.append(_cell(score(column, only, (language,))))
            rows.append([_name(entrant), entrant.segments, *values])
        yield Note(f"{column.title} by language:")
        yield _flush_right(["system", "segments", *languages], rows)
