"""What fine-tuning leaves behind: one result of one task is one JSON line.

A results folder (``results/tasks``) holds one file for each task, ``TASK.jsonl``. Rows are written
by the commands that evaluate, never by hand; evaluating the same training again replaces its row.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Union

from ..errors import UserError
from .commands import difference, training_options
from .json_rows import Row, locked, put_row, read_rows, write_rows

# A value of an option, as JSON has it.
Option = Union[str, bool, int, float, None]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class TaskResult(Row):
    """One fine-tuned model on one split of one task.

    Raises UserError for a main metric that was not measured, and for a task whose name cannot be
    that of a file.
    """

    task: str  # CoLA, MNLI, XNLI, XQuAD, ...
    split: str  # valid, valid1, test_sw, ...: the name in the prepared data
    language: str  # of the split: en, sw, ...
    system: str  # the encoding: diet-rel, learned, ...
    options: dict[str, Option]  # arch, and the encoding's settled options, defaults included
    segments: str  # value of --segment-encoding: none, input or per-head
    metrics: dict[str, float]  # from 0 to 100, correlations times 100
    main_metric: str  # the one of them that the paper reports
    pretrained_sha256: str  # of the pretrained checkpoint; empty where there was none
    pretrain_updates: int  # that it has had
    pretrain_perplexity: float  # of its best validation; 0: unknown
    checkpoint_sha256: str  # of the fine-tuned checkpoint
    seed: int
    lr: float  # peak
    epochs: int  # that the run was to have
    batch: int  # sentences or windows in one update
    parameters: int  # trained numbers, shared ones counted once
    date: str  # of the evaluation, UTC, YYYY-MM-DD
    revision: str  # git describe, of the evaluation; empty outside a repository
    versions: dict[str, str]  # torch, fairseq, scikit-learn, ...
    commands: list[str]  # that made it, in order: training, evaluation
    examples: int = 0  # of the split, that the metrics are over; 0: not counted
    train_examples: int = 0  # 0: not counted
    updates: int = 0  # that the fine-tuned checkpoint has had
    chosen_by: str = ""  # what chose the checkpoint among those of the run: "valid accuracy"
    predictions: str = ""  # their file, as seen from where the command ran; empty: not kept
    notes: list[str] = field(default_factory=list)  # what a reader of the table must know
    model: str = ""  # records.MODEL_OPTIONS beyond the architecture's; older rows do not say it

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.main_metric not in self.metrics:
            raise UserError(
                f"main_metric {self.main_metric!r} of {self.task} is none of {sorted(self.metrics)}"
            )
        if not _NAME.fullmatch(self.task):
            raise UserError(f"task {self.task!r}: give letters, digits, points and dashes")

    @property
    def score(self) -> float:
        """The main metric, 0 to 100."""
        return self.metrics[self.main_metric]

    @property
    def key(self) -> tuple[object, ...]:
        """What evaluations of the same model on the same split share."""
        options = tuple(sorted(self.options.items(), key=lambda option: option[0]))
        return (
            *(self.task, self.split, self.language, self.system, self.segments, options),
            *(self.model, self.parameters, self.pretrained_sha256),
            *(self.seed, self.lr, self.epochs, self.batch),
        )


def read_task_results(path: Path) -> list[TaskResult]:
    """All rows of a file, in order. Raises UserError naming the file and the line."""
    return read_rows(TaskResult, path)


def put_task_result(folder: Path, result: TaskResult) -> Path:
    """Keeps ``result`` in ``folder``; returns the file of its task's rows.

    Takes the place of the row with the same ``key``, and of an older one of this checkpoint that
    does not say its ``model``. Safe to be called by several processes at a time. Raises UserError
    where the row with its key is of another training.
    """
    rows = folder / f"{result.task}.jsonl"
    with locked(folder):
        known = read_task_results(rows) if rows.exists() else []
        old = next((row for row in known if row.key == result.key), result)
        if what := difference(_training(old), _training(result)):
            raise UserError(
                f"{rows}: has {result.system}, seed {result.seed}, of another training ({what}); "
                "give --system another name for this one"
            )
        same = [row for row in known if not row.model and _is_again(result, row)]
        if same:
            write_rows(rows, (result if row is same[0] else row for row in known))
        put_row(rows, result)
    return rows


def _is_again(result: TaskResult, row: TaskResult) -> bool:
    """Whether ``row`` is an evaluation of the same checkpoint, whatever it says of its model."""
    same = result.checkpoint_sha256 == row.checkpoint_sha256
    return same and dataclasses.replace(row, model=result.model).key == result.key


def _training(result: TaskResult) -> dict[str, str]:
    """Its options, where ``diet-mt finetune`` did it; the pretrained model by its content."""
    options = training_options(result.commands[0]) if len(result.commands) > 1 else {}
    return {**options, "--finetune-from-model": result.pretrained_sha256}


def splits_of(folder: Path, task: str, checkpoint: str) -> set[str]:
    """The splits on which ``folder`` has a row of the checkpoint with this SHA-256."""
    rows = folder / f"{task}.jsonl"
    known = read_task_results(rows) if rows.exists() else []
    return {row.split for row in known if row.checkpoint_sha256 == checkpoint}
