"""The commands ``predict`` and ``answer``; docstrings are their help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ..evaluation.requests import AnswerRequest, PredictRequest, specification
from ..system.errors import UserError
from ..system.options import Command, need_file, option


@dataclass(frozen=True, kw_only=True)
class Predict(PredictRequest, Command):
    """Predicts the labels of GLUE or XNLI with a fine-tuned checkpoint.

        diet-mt predict data/glue/CoLA checkpoints/cola/checkpoint_best.pt --results results/tasks
        diet-mt predict data/glue/MNLI CHECKPOINT --split test test1 --predictions FOLDER

    Prints a line for each split, with the task's metrics if the split has labels; --results saves
    them in RESULTS/TASK.jsonl. Predictions are written to FOLDER/SPLIT.tsv or, for test sets of
    GLUE, under the file name that its server requires (MNLI-mm.tsv). Their format is GLUE's,
    index<TAB>prediction, with the gold label as third column if it is available. The task defaults
    to the name of the data folder.
    """

    split: Sequence[str] = option("splits to predict; dev: all dev sets", ("valid",))

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

    The questions are splits of the prepared data, or a file in SQuAD's JSON format, which is cut
    into windows as in training. Writes predictions.json, nbest.json and, for SQuAD 2.0,
    null_odds.json to --out, with a subfolder for each split. If gold answers are available, prints
    F1 and exact match; --results saves them as a row of RESULTS/TASK.jsonl. The task defaults to
    that of the split.
    """

    defaults: ClassVar[dict[str, int]] = {"batch_size": 32}  # windows
    split: Sequence[str] = option("splits to answer: valid, test_xquad_de, ...", ())

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
