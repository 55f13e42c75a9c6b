"""The tasks of GLUE (Wang et al. 2019, arXiv:1804.07461): their official files, labels, metrics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..command_line import need_known
from ..errors import UserError
from .labelled import REFUSE, Example, Labels, examples, write_label_dictionary, write_split
from .table import TableRow, find_table, read_table

ENTAILMENT = Labels(("entailment", "not_entailment"))
YES_NO = Labels(("0", "1"))
NLI = Labels(("contradiction", "neutral", "entailment"))


@dataclass(frozen=True)
class File:
    """One official file: the split that it is here, and where its columns are.

    ``columns`` is None for a file whose first line names them; ``label`` is empty, and so is
    ``id``, where the file has no such column. ``submission``: what GLUE's server calls the
    predictions of this file; empty for files with labels.
    """

    split: str
    name: str
    label: str = ""
    id: str = ""
    columns: tuple[str, ...] | None = None
    submission: str = ""


@dataclass(frozen=True)
class Task:
    """One task of GLUE. ``metrics`` are those of its official leaderboard; by the first of them
    checkpoints are chosen, and it stands for the task in a table.

    ``official``: rows of train and of (the first) dev set, as published.
    """

    name: str
    sentences: tuple[str, ...]
    labels: Labels
    metrics: tuple[str, ...]
    official: tuple[int, int]
    files: tuple[File, ...]

    @property
    def main_metric(self) -> str:
        return self.metrics[0]

    @property
    def classes(self) -> int:
        """Numbers that the model gives: one for each class, or one score."""
        return len(self.labels.names) or 1

    @property
    def dev_splits(self) -> tuple[str, ...]:
        """All dev sets: MNLI has two."""
        return tuple(file.split for file in self.files if file.split.startswith("valid"))

    def file(self, split: str) -> File:
        """Raises UserError for a split that the task does not have."""
        for file in self.files:
            if file.split == split:
                return file
        known = ", ".join(file.split for file in self.files)
        raise UserError(f"{self.name} has no split '{split}'; choose from {known}")


def _usual(
    task: str,
    label: str = "label",
    index: str = "index",
    *,
    numbered: bool = True,
    columns: tuple[str, ...] | None = None,
) -> tuple[File, ...]:
    """``numbered``, ``columns``: train and dev have ``index``, too; what their columns are."""
    own = index if numbered else ""
    return (
        File("train", "train.tsv", label, own, columns),
        File("valid", "dev.tsv", label, own, columns),
        File("test", "test.tsv", id=index, submission=f"{task}.tsv"),
    )


_COLA = ("source", "label", "mark", "sentence")  # its training and dev files have no header
_PAIR = ("sentence1", "sentence2")

# Spearman's, the first of STS-B, is what Devlin et al. 2018 report.
_ALL = (
    Task("CoLA", ("sentence",), YES_NO, ("matthews", "accuracy"), (8551, 1043),
         _usual("CoLA", numbered=False, columns=_COLA)),
    Task("SST-2", ("sentence",), YES_NO, ("accuracy",), (67_349, 872),
         _usual("SST-2", numbered=False)),
    Task("MRPC", ("#1 String", "#2 String"), YES_NO, ("accuracy", "f1"), (3668, 408),
         _usual("MRPC", "Quality", numbered=False)),
    Task("STS-B", _PAIR, Labels(low=0.0, high=5.0), ("spearman", "pearson"), (5749, 1500),
         _usual("STS-B", "score")),
    Task("QQP", ("question1", "question2"), YES_NO, ("accuracy", "f1"), (363_846, 40_430),
         _usual("QQP", "is_duplicate", "id")),
    Task("MNLI", _PAIR, NLI, ("accuracy",), (392_702, 9815), (
        File("train", "train.tsv", "gold_label", "index"),
        File("valid", "dev_matched.tsv", "gold_label", "index"),
        File("valid1", "dev_mismatched.tsv", "gold_label", "index"),
        File("test", "test_matched.tsv", id="index", submission="MNLI-m.tsv"),
        File("test1", "test_mismatched.tsv", id="index", submission="MNLI-mm.tsv"))),
    Task("QNLI", ("question", "sentence"), ENTAILMENT, ("accuracy",), (104_743, 5463),
         _usual("QNLI")),
    Task("RTE", _PAIR, ENTAILMENT, ("accuracy",), (2490, 277), _usual("RTE")),
    Task("WNLI", _PAIR, YES_NO, ("accuracy",), (635, 71), _usual("WNLI")),
)  # fmt: skip
TASKS = {task.name: task for task in _ALL}


def task_named(name: str) -> Task:
    """The task of this name. Raises UserError where GLUE has none."""
    need_known("task", [name], TASKS)
    return TASKS[name]


def read_file(folder: Path, task: Task, split: str, *, bad_rows: str = REFUSE) -> Iterator[Example]:
    """Yields the examples of ``folder/TASK/FILE``; those without an id of their own are numbered.

    ``bad_rows`` as :func:`labelled.examples` has it; rows of a file without labels are never left
    out, because each of them wants a prediction. Raises UserError where the file cannot be read,
    lacks a column, or has a bad row.
    """
    file = task.file(split)
    needed = [*task.sentences, *filter(None, (file.label, file.id))]
    path = find_table(folder / task.name, file.name)

    def make(row: TableRow, number: int) -> Example:
        sentences = tuple(row[column] for column in task.sentences)
        if not file.label:
            return Example(row[file.id], sentences, None)
        for column, sentence in zip(task.sentences, sentences, strict=True):
            if not sentence.strip():
                raise UserError(f"{row.where}: nothing in column '{column}'")
        label = task.labels.checked(row[file.label], row.where)
        return Example(row[file.id] if file.id else str(number), sentences, label)

    rows = read_table(path, needed, columns=file.columns)
    return examples(rows, make, bad_rows=bad_rows if file.label else REFUSE)


def write(folder: Path, task: Task, out: Path, bad_rows: str = REFUSE) -> None:
    """Writes the raw folder of a task (``labelled.py``). Raises UserError as ``read_file``."""
    for file in task.files:
        write_split(out, file.split, read_file(folder, task, file.split, bad_rows=bad_rows))
    if not task.labels.is_score:
        write_label_dictionary(out / "labels.txt", task.labels)
