"""The fine-tuning of a pretrained encoder on a task: GLUE, XNLI, questions."""

from __future__ import annotations

import json
from pathlib import Path

from ..bert.glue import ENGLISH, XNLI, Task, split_name
from ..errors import UserError
from ..evaluation.records import system_of
from ..files import lines_in
from .build import Training, TrainingRequest, merged, placed, warm_up
from .options import Options, parse, whole

_SQUAD = "SQuAD"


def fine_tuning(
    data: Path, pretrained: Path, request: TrainingRequest, *, task: str = "", system: str = ""
) -> Training:
    """The fairseq-train of a checkpoint over the folder of a task.

    ``task``: CoLA, XNLI, SQuAD, ...; empty: the name of ``data``. ``system``: encoding that the
    checkpoint must have; empty: any. Raises UserError where the data, the checkpoint or the options
    are not what they should be.
    """
    from ..evaluation.checkpoint import model_options
    from ..evaluation.requests import specification

    questions = data / "train" / "about.json"
    examples = _examples(data, questions)
    if questions.is_file():
        head = {"task": ["extractive_qa"], "criterion": ["extractive_qa"]}
        head |= {"best-checkpoint-metric": ["f1"]}
        task = task or _SQUAD
    else:
        task = task or data.resolve().name
        head = _classification(specification(task))
    # Zero-shot transfer knows nothing but English before its test.
    if task == XNLI:
        head["valid-subset"] = [split_name("valid", ENGLISH)]
    model = parse(model_options(pretrained, system))
    fixed = {"finetune-from-model": [str(pretrained)], **head, **model}
    fixed |= {"maximize-best-checkpoint-metric": [], "log-format": ["simple"]}
    options = merged(request, system_of(model["arch"][0].removeprefix("roberta_")), fixed)
    warm_up(options, updates_of(examples, options))
    training = placed(data, options, request, None)
    # One process: a run is small, and several run side by side.
    training.options["distributed-world-size"] = ["1"]
    return training


def updates_of(examples: int, options: Options) -> int:
    """Updates of the whole training: of ``max-update``, or of so many epochs over the examples."""
    if "max-update" in options:
        return whole(options, "max-update")
    batch = whole(options, "batch-size", 32) * whole(options, "update-freq", 1)
    return -(-examples // batch) * whole(options, "max-epoch", 1)


def _examples(data: Path, questions: Path) -> int:
    """Of the training set."""
    ids = data / "raw" / "train.id"
    if questions.is_file():
        try:
            return int(json.loads(questions.read_text(encoding="utf-8"))["windows"])
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{questions}: damaged; prepare the questions again") from None
    if ids.is_file():
        return lines_in(ids)
    raise UserError(f"{data}: no task made by diet-mt prepare glue, xnli or qa")


def _classification(task: Task) -> Options:
    """What the task and the criterion ``diet_sentence_prediction`` have to know of a task."""
    return {
        "task": ["diet_sentence_prediction"],
        "criterion": ["diet_sentence_prediction"],
        "init-token": ["0"],
        "separator-token": ["2"],
        "num-classes": [str(task.classes)],
        **({"regression-target": []} if task.labels.is_score else {}),
        "metrics": [" ".join(task.metrics)],
        "best-checkpoint-metric": [task.main_metric],
    }
