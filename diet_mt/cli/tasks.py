"""``diet-mt predict`` and ``answer``, over fine-tuned checkpoints: a class each, with the help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ..evaluation.requests import AnswerRequest, PredictRequest, specification
from ..system.errors import UserError
from ..system.options import Command, need_file, option


@dataclass(frozen=True, kw_only=True)
class Predict(PredictRequest, Command):
    """Classifies with a fine-tuned checkpoint: GLUE, XNLI.

        diet-mt predict data/glue/CoLA checkpoints/cola/checkpoint_best.pt --results results/tasks
        diet-mt predict data/glue/MNLI CHECKPOINT --split test test1 --predictions FOLDER

    Prints a line for each split, with the task's metrics if it has labels; --results saves them in
    RESULTS/TASK.jsonl. Predictions go to FOLDER/SPLIT.tsv, or for a test set of GLUE to the file
    name of its server (MNLI-mm.tsv). They have GLUE's format, index<TAB>prediction, and a third
    column with the labels, if known. The task is by default the data folder's name.
    """

    split: Sequence[str] = option("splits; dev: all dev sets", ("valid",))

    def run(self) -> None:
        request = replace(self, task=self.task or self.data.absolute().name)
        dev = specification(request.task).dev_splits
        need_file(self.checkpoint, "checkpoint")
        splits = [name for word in self.split for name in (dev if word == "dev" else [word])]
        if not self.dry_run:
            from ..evaluation.predict import predict_splits

            predict_splits(request, splits)
            return
        row = [self.results / f"{request.task}.jsonl"] if self.results else []
        for split in splits:
            files = [*filter(None, [request.file(split)]), *row]
            print("\t".join([request.task, split, *map(str, files)]))


@dataclass(frozen=True, kw_only=True)
class Answer(AnswerRequest, Command):
    """Answers questions with a fine-tuned checkpoint.

        diet-mt answer data/qa CHECKPOINT --split valid test_xquad_de --out answers
        diet-mt answer data/qa CHECKPOINT --file questions.json --out answers/mine

    The questions are splits of the prepared data, or a file in SQuAD's JSON, cut into windows as in
    training. Writes predictions.json, nbest.json and, for SQuAD 2.0, null_odds.json to the folder
    --out, for splits to subfolders of their names; with gold answers, prints F1 and exact match
    and, with --results, saves them as a line of RESULTS/TASK.jsonl for each split. The task is by
    default that of the split.
    """

    defaults: ClassVar = {"batch_size": 32}  # windows
    split: Sequence[str] = option("valid, test_xquad_de, ...", ())

    def run(self) -> None:
        if bool(self.split) == bool(self.file):
            raise UserError("give either --split or --file")
        for path, what in ((self.checkpoint, "checkpoint"), (self.file, "file")):
            if path:
                need_file(path, what)
        if self.dry_run:
            for split in self.split or [""]:
                print(self.out / split / "predictions.json")
            return
        from ..evaluation.answer import answer_sets

        answer_sets(self, list(self.split))
