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
    """Beam search.

    Scores are divided by the length penalty: length^lenpen or, with ``gnmt`` as in the paper,
    ((5 + length) / 6)^lenpen.
    """

    beam: Positive = option("beam size", 10)
    lenpen: Finite = option("exponent of the length penalty", 0.6, exclusive="lenpen")
    length_penalty: str = option(
        "fairseq: length^LENPEN; gnmt: the paper's ((5 + length) / 6)^LENPEN",
        "fairseq",
        choices=("fairseq", "gnmt"),
    )
    max_tokens: Positive = option("maximum source tokens of a batch", 4096)
    lenpens: Sequence[Finite] = option(
        "exponents to choose from by BLEU on the validation set; rows with a tuned exponent form "
        "separate tables",
        (),
        flag="--tune-lenpen",
        metavar="LENPEN",
        exclusive="lenpen",
    )
    tried: str = ""  # "0:33.1 0.6:34.0": lenpens with their BLEU on the validation set
    options: Sequence[str] = ()  # further options of fairseq-generate

    @property
    def mark(self) -> str:
        """Hash of the further options for file names; empty without any."""
        text = shlex.join(portable(self.options))
        return hashlib.sha256(text.encode()).hexdigest()[:8] if text else ""

    def as_data(self) -> tuple[Options, dict[str, Option]]:
        """Further options, and entries of ``--model-overrides``. Raises UserError for others."""
        options = as_data(self.options)
        text = options.pop(_OVERRIDES, "{}")
        try:
            given = dict(literal_eval(str(text)))
        except (ValueError, SyntaxError, TypeError):
            raise UserError(f"--{_OVERRIDES} {text}: expected a Python dictionary") from None
        kinds = (str, int, float, type(None))
        return options, {
            str(name): value if isinstance(value, kinds) else str(value)
            for name, value in given.items()
        }


@dataclass(frozen=True, kw_only=True)
class EvaluateRequest:
    """Test set of an evaluation: a subset of the data, two text files, or one of SacreBLEU."""

    data: Path = argument("folder made by diet-mt prepare or fairseq-preprocess")
    checkpoint: Path = argument("checkpoint file, or folder of a training")
    subset: str = option(
        "split of the data (default: test, or test1 for checkpoints of the reverse direction)", ""
    )
    source: File | None = option("source text, one sentence per line", None)
    reference: File | None = option("reference translations of --source", None)
    test_set: str = option("test set of SacreBLEU: wmt18, ...", "", metavar="NAME")
    results: Folder = option("folder of results", Path("results"))
    system: str = option("name in the row (default: the encoding)", "", metavar="NAME")
    test_set_name: str = option(
        "name of the test set, in the row and, with --source, in its key", "", metavar="TEXT"
    )
    dry_run: bool = option("only print the command", False)

    def __post_init__(self) -> None:
        if self.system and not _NAME.fullmatch(self.system):
            raise UserError(f"--system {self.system}: allowed are letters, digits and . _ , + -")


@dataclass(frozen=True, kw_only=True)
class EvaluationRequest:
    """Checkpoint and data of an evaluation of a fine-tuned model, and its row."""

    data: Path = argument("folder made by diet-mt prepare glue, xnli or qa")
    checkpoint: Path = argument("checkpoint made by diet-mt finetune")
    task: str = option("task (default: of the data folder, or of the split)", "", metavar="NAME")
    results: Folder | None = option("folder of rows, such as results/tasks (default: none)", None)
    system: str | None = option("name in the row (default: the encoding)", None, metavar="NAME")
    pretrained: File | None = option("pretrained checkpoint, if not recorded by finetune", None)
    batch_size: Positive = option("examples in a batch", 64)
    dry_run: bool = option("only list the files to be written", False)


@dataclass(frozen=True, kw_only=True)
class PredictRequest(EvaluationRequest):
    """Predictions of a classification task: CoLA, MNLI, XNLI, ..."""

    predictions: Folder | None = option("folder of predictions (default: none)", None)

    def file(self, split: str) -> Path | None:
        """The file of predictions, under the name that GLUE's server requires, if any."""
        submissions = {file.split: file.submission for file in specification(self.task).files}
        name = submissions.get(split) or f"{split}.tsv"
        return self.predictions / name if self.predictions else None

    def command(self, split: str) -> Options:
        """The command as stored in a row, with the last names of folders."""
        words = ["diet-mt", "predict", self.data.name, self.checkpoint.name]
        return {COMMAND: words, "task": self.task, "split": split}


def specification(task: str) -> Task:
    """Labels and metrics of a GLUE task; XNLI has those of MNLI."""
    return task_named(MNLI if task == XNLI else task)


@dataclass(frozen=True, kw_only=True)
class AnswerRequest(EvaluationRequest):
    """Answers to questions. ``task`` defaults to that of the split."""

    out: Folder = option("folder of the answers")
    file: Path | None = option("questions in SQuAD's JSON, plain or gzipped", None)
    language: str = option("language of --file: en, de, ...", "", metavar="XX")
    scoring: str = option("scoring of --file", "squad", choices=SCORINGS)
    max_answer: Positive | None = option(
        "maximum subwords of an answer (default: as in training)", None
    )
    n_best: Positive = option("answers listed for each question", 20)
    threshold: Finite = option(
        "null odds above which a question of SQuAD 2.0 has no answer; diet-mt verify "
        "--null-odds computes the best threshold",
        0.0,
        metavar="ODDS",
    )

    def command(self, split: str, name: str) -> Options:
        """The command as stored in a row; ``name``: of the file of questions."""
        words = ["diet-mt", "answer", self.data.name, self.checkpoint.name]
        given = {"split": split} if split else {"file": name}
        return {COMMAND: words, **given, "max-answer": self.max_answer}
