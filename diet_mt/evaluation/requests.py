"""Options of ``diet-mt evaluate``, ``predict`` and ``answer``, without torch and fairseq."""

from __future__ import annotations

import hashlib
import re
import shlex
from ast import literal_eval
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..bert.glue import MNLI, XNLI, Task, task_named
from ..bert.squad import SCORINGS
from ..system.errors import UserError
from ..system.options import File, Finite, Folder, Positive, argument, option
from .options import COMMAND, Option, Options, as_data, portable

_OVERRIDES = "model-overrides"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._,+-]*")


@dataclass(frozen=True)
class Search:
    """Search.

    Scores are divided by length^lenpen or, with ``gnmt``, as in the paper, by
    ((5 + length) / 6)^lenpen.
    """

    beam: Positive = option("beam size", 10)
    lenpen: Finite = option("exponent of the length penalty", 0.6, exclusive="lenpen")
    length_penalty: str = option(
        "length^LENPEN, or the paper's ((5 + length) / 6)^LENPEN",
        "fairseq",
        choices=("fairseq", "gnmt"),
    )
    max_tokens: Positive = option("source tokens of a batch", 4096)
    lenpens: Sequence[Finite] = option(
        "decode the validation set with each, then the test set with the one of the highest BLEU; "
        "a row and a table of its own",
        (),
        flag="--tune-lenpen",
        metavar="LENPEN",
        exclusive="lenpen",
    )
    tried: str = ""  # "0:33.1 0.6:34.0": lenpens with their BLEU on the validation set
    options: Sequence[str] = ()  # more of fairseq-generate's

    @property
    def mark(self) -> str:
        """Eight digits for names of files, from the further options; empty without any."""
        text = portable(shlex.join(self.options))
        return hashlib.sha256(text.encode()).hexdigest()[:8] if text else ""

    def as_data(self) -> tuple[Options, dict[str, Option]]:
        """The further options, and the entries of ``--model-overrides`` apart."""
        options = as_data(shlex.join(self.options))
        text = options.pop(_OVERRIDES, "{}")
        try:
            given = dict(literal_eval(str(text)))
        except (ValueError, SyntaxError, TypeError):
            raise UserError(f"--{_OVERRIDES} {text}: not a dictionary of Python") from None
        kinds = (str, int, float, type(None))
        return options, {
            str(name): value if isinstance(value, kinds) else str(value)
            for name, value in given.items()
        }


@dataclass(frozen=True, kw_only=True)
class EvaluateRequest:
    """What to evaluate: ``subset`` of the data, two text files, or a test set of SacreBLEU."""

    data: Path = argument("made by diet-mt prepare or fairseq-preprocess")
    checkpoint: Path = argument("folder of a training, or a checkpoint")
    subset: str = option(
        "part of the data (default test, or test1 where DATA has that for the other direction)", ""
    )
    source: File | None = option("text to decode, a sentence a line", None)
    reference: File | None = option("its translation, line by line", None)
    test_set: str = option("test set of SacreBLEU: wmt18, ...", "", metavar="NAME")
    results: Folder = option("folder of the row", Path("results"))
    system: str = option("name in the row (default: the encoding)", "", metavar="NAME")
    test_set_name: str = option("test set in the row (default: its own)", "", metavar="TEXT")
    dry_run: bool = option("print the command, do nothing", False)

    def __post_init__(self) -> None:
        if self.system and not _NAME.fullmatch(self.system):
            raise UserError(
                f"--system {self.system}: give letters, digits and . _ , + - alone; it names a file"
            )


@dataclass(frozen=True, kw_only=True)
class EvaluationRequest:
    """What to evaluate of a fine-tuned model, and its row."""

    data: Path = argument("folder made by diet-mt prepare glue, xnli or qa")
    checkpoint: Path = argument("made by diet-mt finetune")
    task: str = option("name of the task in the row (default: by the data)", "", metavar="NAME")
    results: Folder | None = option("folder of the row, such as results/tasks", None)
    system: str | None = option("name in the row (default: the encoding)", None, metavar="NAME")
    pretrained: File | None = option("pretrained checkpoint, if moved since the fine-tuning", None)
    batch_size: Positive = option("examples at a time", 64)
    dry_run: bool = option("list the files to be written, do nothing", False)


@dataclass(frozen=True, kw_only=True)
class PredictRequest(EvaluationRequest):
    """With the folder of the predictions; ``task`` is CoLA, MNLI, XNLI, ..."""

    predictions: Folder | None = option("folder of the predictions", None)

    def file(self, split: str) -> Path | None:
        """Of the predictions: as GLUE's server asks for it, else the split's."""
        submissions = {file.split: file.submission for file in specification(self.task).files}
        name = submissions.get(split) or f"{split}.tsv"
        return self.predictions / name if self.predictions else None

    def command(self, split: str) -> Options:
        """For the row, with folders by their last names."""
        words = ["diet-mt", "predict", self.data.name, self.checkpoint.name]
        return {COMMAND: words, "task": self.task, "split": split}


def specification(task: str) -> Task:
    """Labels and metrics of a task of GLUE, or of XNLI, which has those of MNLI."""
    return task_named(MNLI if task == XNLI else task)


@dataclass(frozen=True, kw_only=True)
class AnswerRequest(EvaluationRequest):
    """With how answers are made, and their folder. Without ``task``: by the split."""

    out: Folder = option("folder of the answers")
    file: Path | None = option("SQuAD's JSON, plain or gzipped, instead of splits", None)
    language: str = option("language of --file: en, de, ...", "", metavar="XX")
    scoring: str = option("scoring of --file", "squad", choices=SCORINGS)
    max_answer: Positive | None = option("subwords (default: as in training)", None)
    n_best: Positive = option("answers to list for each question", 20)
    threshold: Finite = option(
        "odds of no answer above which a question that may be impossible has none; diet-mt verify "
        "--null-odds finds the best ones",
        0.0,
        metavar="ODDS",
    )

    def command(self, split: str, name: str) -> Options:
        """For the row, with folders by their last names; ``name``: of the file's questions."""
        words = ["diet-mt", "answer", self.data.name, self.checkpoint.name]
        given = {"split": split} if split else {"file": name}
        return {COMMAND: words, **given, "max-answer": self.max_answer}
