"""From single runs to the scores of a table, as the paper reports them.

Chen et al. 2021, table 2: "the median of the maximum accuracy over all checkpoints among five
runs". A row of ``task_records`` is one run at its best checkpoint, so already the maximum; the
median over seeds is taken here, for the setting (learning rate, epochs, batch) whose median is
best. On zero-shot tasks the setting is chosen where checkpoints were, on the dev set in English,
and a score is the mean over the languages, whose median over the seeds is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from ..errors import UserError
from ..evaluation.task_records import Option, TaskResult


@dataclass(frozen=True)
class TaskColumn:
    """One column of a table: a metric of a task on one split, or on all that begin so. Of results
    without this metric it has nothing.

    ``metric``: empty for the task's main one. ``chosen_on``: task and split whose main metric
    chooses the setting.
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


def _glue(title: str, task: str, split: str = "valid", metric: str = "") -> TaskColumn:
    return TaskColumn(title, task, split, (task, "valid"), metric)


def _zero_shot(title: str, task: str, on: tuple[str, str], metric: str) -> TaskColumn:
    return TaskColumn(title, task, "test", on, metric, all_languages=True)


# The paper's columns, which its average is of; then the tasks of GLUE and the official metrics that
# it leaves out.
GLUE_COLUMNS = (
    _glue("MNLI", "MNLI"),
    _glue("MNLI-mm", "MNLI", "valid1"),
    *(_glue(task, task) for task in ("QQP", "QNLI", "SST-2", "CoLA", "STS-B")),
)
MORE_GLUE_COLUMNS = (
    *(_glue(task, task) for task in ("MRPC", "RTE", "WNLI")),
    _glue("MRPC F1", "MRPC", metric="f1"),
    _glue("QQP F1", "QQP", metric="f1"),
    _glue("STS-B Pearson", "STS-B", metric="pearson"),
)
_SQUAD = ("SQuAD", "valid")
XTREME_COLUMNS = (
    _zero_shot("XNLI", "XNLI", ("XNLI", "valid_en"), "accuracy"),
    *(
        _zero_shot(f"{title}{more}", task, _SQUAD, metric)
        for title, task in (("XQuAD", "XQuAD"), ("MLQA", "MLQA"), ("TyDiQA", "TyDiQA-GoldP"))
        for more, metric in (("", "f1"), (" EM", "exact_match"))
    ),
)
# Behind it, what checkpoints and settings were chosen by.
MORE_XTREME_COLUMNS = tuple(
    TaskColumn(f"SQuAD{more}", *_SQUAD, _SQUAD, metric)
    for more, metric in (("", "f1"), (" EM", "exact_match"))
)
# Title of a column -> its task.
TASK_OF = {
    column.title: column.task
    for columns in (GLUE_COLUMNS, MORE_GLUE_COLUMNS, XTREME_COLUMNS, MORE_XTREME_COLUMNS)
    for column in columns
}


@dataclass(frozen=True)
class Setting:
    """What was tried out for each system."""

    lr: float
    epochs: int
    batch: int

    def __str__(self) -> str:
        return f"lr {self.lr:g}, epochs {self.epochs}, batch {self.batch}"


@dataclass(frozen=True)
class Score:
    """``value``: median over the seeds; ``by_seed``: what it is the median of, 0 to 100."""

    value: float
    by_seed: dict[int, float]
    setting: Setting
    results: tuple[TaskResult, ...]
    languages: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Entrant:
    """All results of one pretrained checkpoint with segments of one kind. Equal to itself alone.

    ``apart``: the options by which its model differs from others of this name and size.
    """

    name: str
    segments: str
    arch: str
    results: tuple[TaskResult, ...]
    apart: str = ""

    @property
    def options(self) -> Mapping[str, Option]:
        """Of the encoding, as the checkpoint says them."""
        return self.results[0].options

    def describe(self) -> str:
        """Size and pretraining, in words."""
        first = self.results[0]
        parts = [f"{first.parameters / 1e6:.1f} M parameters"]
        if first.pretrained_sha256:
            parts.append(f"pretrained for {first.pretrain_updates:,} updates")
            if first.pretrain_perplexity:
                # Of a loss with three decimals, so three digits are what is known.
                decimals = 0 if first.pretrain_perplexity >= 100 else 1
                parts.append(f"perplexity {first.pretrain_perplexity:.{decimals}f}")
        else:
            parts.append("not pretrained")
        return ", ".join(parts)


def entrants(results: Iterable[TaskResult]) -> list[Entrant]:
    """Results by system, segments, options and pretrained checkpoint, in their first order.

    The paper adds segments when fine-tuning on some tasks, and leaves the others as they were
    pretrained (appendix A): a model's results without segments count with each kind that it has on
    other tasks.
    """
    groups: dict[tuple[object, ...], dict[str, list[TaskResult]]] = {}
    for result in results:
        options = tuple(sorted((name, repr(value)) for name, value in _options(result).items()))
        model = groups.setdefault((result.system, options, result.pretrained_sha256), {})
        model.setdefault(result.segments, []).append(result)
    found = [rows for model in groups.values() for rows in _with_plain(model)]
    return [
        Entrant(rows[0].system, rows[0].segments, _arch(rows[0]), tuple(rows), _apart(rows, found))
        for rows in found
    ]


def _with_plain(model: dict[str, list[TaskResult]]) -> Iterator[list[TaskResult]]:
    """Results by kind of segments, those without where they are missing."""
    supplemented = {task.task for kind, rows in model.items() if kind != "none" for task in rows}
    for kind, rows in model.items():
        plain = [row for row in model.get("none", ()) if row.task not in supplemented]
        if kind != "none":
            yield rows + plain
        elif not supplemented or len(plain) < len(rows):
            yield rows


def _options(result: TaskResult) -> dict[str, Option]:
    """Of its encoding and of the rest of the model."""
    rest = (word.partition("=") for word in result.model.split())
    return {**result.options, **{name: value or True for name, _, value in rest}}


def _arch(result: TaskResult) -> str:
    return str(result.options.get("arch", ""))


def _apart(rows: list[TaskResult], found: Iterable[list[TaskResult]]) -> str:
    own = _options(rows[0])
    alike = [
        _options(each[0])
        for each in found
        if (each[0].system, _arch(each[0])) == (rows[0].system, _arch(rows[0]))
    ]
    names = sorted({name for each in alike for name in each})
    differing = [name for name in names if len({repr(each.get(name)) for each in alike}) > 1]
    return " ".join(f"{name}={own[name]}" for name in differing if name in own)


def languages_of(column: TaskColumn, results: Iterable[TaskResult]) -> tuple[str, ...]:
    """Languages in which every run of a task was tested: means over others do not compare.

    Raises UserError where there are runs, but no language that all have.
    """
    found: dict[tuple[object, ...], set[str]] = {}
    for result in results:
        if column.holds(result):
            model = (result.system, result.segments, result.model, result.pretrained_sha256)
            run = (*model, _setting(result), result.seed)
            found.setdefault(run, set()).add(result.language)
    if not found:
        return ()
    common = sorted(set.intersection(*found.values()))
    if not common:
        raise UserError(
            f"{column.task}: no language in which all runs were tested; test them again"
        )
    return tuple(common)


def score(column: TaskColumn, entrant: Entrant, languages: Sequence[str] = ()) -> Score | None:
    """The score of one cell; None where nothing was measured.

    ``languages``: those to average over; none: as many as there are. Raises UserError where several
    settings were tried, and nothing says which to choose.
    """
    mine = [each for each in entrant.results if column.holds(each)]
    if languages:
        mine = [each for each in mine if each.language in languages]
    if not mine:
        return None
    setting = _choose(column, entrant, {_setting(each) for each in mine})
    by_seed: dict[int, list[TaskResult]] = {}
    for each in mine:
        if _setting(each) == setting:
            by_seed.setdefault(each.seed, []).append(each)
    values = {
        seed: fmean(column.value(each) for each in rows) for seed, rows in sorted(by_seed.items())
    }
    chosen = tuple(each for each in mine if _setting(each) == setting)
    tested = tuple(sorted({each.language for each in chosen}))
    return Score(median(values.values()), values, setting, chosen, tested)


def _setting(result: TaskResult) -> Setting:
    return Setting(result.lr, result.epochs, result.batch)


def _choose(column: TaskColumn, entrant: Entrant, tried: set[Setting]) -> Setting:
    """The setting whose median is best, of those with the most seeds; the first of equal ones."""
    seeds: dict[Setting, dict[int, float]] = {}
    for each in entrant.results:
        if (each.task, each.split) == column.chosen_on and _setting(each) in tried:
            seeds.setdefault(_setting(each), {})[each.seed] = each.score
    if not seeds:
        if len(tried) == 1:
            return next(iter(tried))
        raise UserError(
            f"{column.task}: {len(tried)} settings of {entrant.name} were tested, and no result on "
            f"{' '.join(column.chosen_on)} says which to choose; give that file, too"
        )
    most = max(len(values) for values in seeds.values())
    complete = {setting: values for setting, values in seeds.items() if len(values) == most}
    return max(complete, key=lambda setting: median(complete[setting].values()))
