"""Official tables, labels and metrics of GLUE's tasks and of XNLI.

GLUE: Wang et al. (2019), arXiv:1804.07461. XNLI: Conneau et al. (2018), arXiv:1809.05053, one table
of 19 columns for all languages; its raw folder has MNLI's ``train``, and ``valid_LANG`` and
``test_LANG`` of each language. All files ``*.dev.tsv`` and ``*.test.tsv``, plain or .gz, are read,
so that further languages can be added to the official ones.

In the tables a line is a row, columns end at tabs, and quotes are letters like any other. A CSV
reader would swallow lines after a quotation mark at the beginning of a sentence.

A raw folder holds, for each split (train, valid, test, ...), one file per part: ``SPLIT.input0``,
``SPLIT.input1`` for pairs, ``SPLIT.id``, and ``SPLIT.label`` where the labels are known. Line n of
each belongs to the same example.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ..corpora.parallel import BYTE_ORDER_MARK
from ..system.errors import UserError
from ..system.files import decoded, make_folder, plain_or_gz, raw_lines, write_lines, writing
from ..system.options import need_known
from ..system.progress import say
from .settings import REFUSE, SKIP

XNLI, MNLI = "XNLI", "MNLI"  # XNLI has MNLI's training set and labels
XNLI_SPLITS = {"valid": "dev", "test": "test"}  # split -> name in its files
ENGLISH = "en"
_XNLI_COLUMNS = ("language", "gold_label", "sentence1", "sentence2", "pairID")
_CODE = re.compile(r"[a-z]{2,3}(-[A-Za-z]+)?")

Row = TypeVar("Row")


@dataclass(frozen=True)
class Example:
    """One sentence or pair; ``label`` is None where it is not known."""

    id: str
    sentences: tuple[str, ...]
    label: str | None


@dataclass(frozen=True)
class Labels:
    """Valid labels: one of ``names``, by number (F1's positive one is number 1), or a score between
    ``low`` and ``high``.
    """

    names: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0

    @property
    def is_score(self) -> bool:
        return not self.names

    def checked(self, text: str, where: str) -> str:
        """``text``, if it is a valid label. Raises UserError otherwise."""
        if not self.is_score:
            if text not in self.names:
                raise UserError(f"{where}: label '{text}', expected {', '.join(self.names)}")
            return text
        try:
            score = float(text)
        except ValueError:
            score = math.nan
        if not self.low <= score <= self.high:  # nor is NaN
            raise UserError(f"{where}: score '{text}', expected {self.low:g} to {self.high:g}")
        return text


ENTAILMENT = Labels(("entailment", "not_entailment"))
YES_NO = Labels(("0", "1"))
NLI = Labels(("contradiction", "neutral", "entailment"))


@dataclass(frozen=True)
class OfficialFile:
    """One official file. ``columns``: None if the first line names them; ``label``, ``id``: empty
    without such a column; ``submission``: name of predictions on GLUE's server, if it takes them.
    """

    split: str
    name: str
    label: str = ""
    id: str = ""
    columns: tuple[str, ...] | None = None
    submission: str = ""


@dataclass(frozen=True)
class Task:
    """One task of GLUE. ``metrics``: those of its leaderboard; the first one selects checkpoints.
    ``official``: published rows of train and of the (first) dev set.
    """

    name: str
    sentences: tuple[str, ...]
    labels: Labels
    metrics: tuple[str, ...]
    official: tuple[int, int]
    files: tuple[OfficialFile, ...]

    @property
    def main_metric(self) -> str:
        return self.metrics[0]

    @property
    def classes(self) -> int:
        """Number of outputs of the model: one per class, or one score."""
        return len(self.labels.names) or 1

    @property
    def dev_splits(self) -> tuple[str, ...]:
        """All dev sets: MNLI has two."""
        return tuple(file.split for file in self.files if file.split.startswith("valid"))


def _usual(
    task: str,
    label: str = "label",
    index: str = "index",
    *,
    numbered: bool = True,
    columns: tuple[str, ...] | None = None,
) -> tuple[OfficialFile, ...]:
    """``numbered``: train and dev also have ``index``; ``columns``: those of train and dev."""
    own = index if numbered else ""
    return (
        OfficialFile("train", "train.tsv", label, own, columns),
        OfficialFile("valid", "dev.tsv", label, own, columns),
        OfficialFile("test", "test.tsv", id=index, submission=f"{task}.tsv"),
    )


_COLA = ("source", "label", "mark", "sentence")  # its training and dev files have no header
_PAIR = ("sentence1", "sentence2")

# For STS-B, Devlin et al. 2018 report Spearman's correlation.
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
    Task(MNLI, _PAIR, NLI, ("accuracy",), (392_702, 9815), (
        OfficialFile("train", "train.tsv", "gold_label", "index"),
        OfficialFile("valid", "dev_matched.tsv", "gold_label", "index"),
        OfficialFile("valid1", "dev_mismatched.tsv", "gold_label", "index"),
        OfficialFile("test", "test_matched.tsv", id="index", submission="MNLI-m.tsv"),
        OfficialFile("test1", "test_mismatched.tsv", id="index", submission="MNLI-mm.tsv"))),
    Task("QNLI", ("question", "sentence"), ENTAILMENT, ("accuracy",), (104_743, 5463),
         _usual("QNLI")),
    Task("RTE", _PAIR, ENTAILMENT, ("accuracy",), (2490, 277), _usual("RTE")),
    Task("WNLI", _PAIR, YES_NO, ("accuracy",), (635, 71), _usual("WNLI")),
)  # fmt: skip
TASKS = {task.name: task for task in _ALL}


def task_named(name: str) -> Task:
    """The task of this name."""
    need_known("task", [name], TASKS)
    return TASKS[name]


def read_file(
    folder: Path, task: Task, file: OfficialFile, *, bad_rows: str = REFUSE
) -> Iterator[Example]:
    """The examples of ``folder/TASK/FILE``, numbered if they have no id. Rows without labels are
    never skipped, because each requires a prediction.
    """
    needed = [*task.sentences, *filter(None, (file.label, file.id))]

    def make(row: dict[str, str], where: str, number: int) -> Example:
        name = row[file.id] if file.id else str(number)
        sentences = tuple(row[column] for column in task.sentences)
        if not file.label:
            return Example(name, sentences, None)
        _need_text(sentences, where)
        return Example(name, sentences, task.labels.checked(row[file.label], where))

    path, bad_rows = plain_or_gz(folder / task.name, file.name), bad_rows if file.label else REFUSE
    return read_rows(path, needed, make, columns=file.columns, bad_rows=bad_rows)


def _need_text(sentences: Iterable[str], where: str) -> None:
    if not all(sentence.strip() for sentence in sentences):
        raise UserError(f"{where}: an empty sentence")


def write_glue(folder: Path, task: Task, out: Path, bad_rows: str = REFUSE) -> None:
    """Writes the raw folder of a task."""
    for file in task.files:
        write_split(out, file.split, read_file(folder, task, file, bad_rows=bad_rows))
    if not task.labels.is_score:
        write_label_dictionary(out / "labels.txt", task.labels)


def split_name(kind: str, language: str) -> str:
    """``valid`` and ``sw`` -> ``valid_sw``."""
    return f"{kind}_{language}"


def language_of(split: str) -> str:
    """The language in the name of a split; English without one."""
    return split.partition("_")[2] or ENGLISH


def xnli_files(folder: Path, kind: str) -> list[Path]:
    """XNLI's files of ``dev`` or ``test``; raises UserError if there are none."""
    files = sorted({*folder.glob(f"*.{kind}.tsv"), *folder.glob(f"*.{kind}.tsv.gz")})
    if not files:
        raise UserError(f"{folder}: holds no *.{kind}.tsv or *.{kind}.tsv.gz; add XNLI's files")
    return files


def read_languages(paths: Iterable[Path], bad_rows: str = REFUSE) -> dict[str, list[Example]]:
    """Language -> its examples. Raises UserError for a language in several files."""

    def make(row: dict[str, str], where: str, _: int) -> tuple[str, Example]:
        language, sentences = row["language"], (row["sentence1"], row["sentence2"])
        if not _CODE.fullmatch(language):
            raise UserError(f"{where}: '{language}' is not a language code")
        _need_text(sentences, where)
        label = NLI.checked(row["gold_label"], where)
        return language, Example(row["pairID"], sentences, label)

    languages: dict[str, list[Example]] = {}
    for path in paths:
        rows = list(read_rows(path, _XNLI_COLUMNS, make, bad_rows=bad_rows))
        if twice := languages.keys() & {language for language, _ in rows}:
            raise UserError(f"{path}: language '{min(twice)}' is in another file, too; remove one")
        for language, example in rows:
            languages.setdefault(language, []).append(example)
    return dict(sorted(languages.items()))


def write_xnli(folder: Path, glue: Path, out: Path, bad_rows: str = REFUSE) -> None:
    """Writes the raw folder of XNLI. Raises UserError without an English dev set."""
    languages = {
        kind: read_languages(xnli_files(folder, name), bad_rows)
        for kind, name in XNLI_SPLITS.items()
    }
    if ENGLISH not in languages["valid"]:
        raise UserError(f"{folder}: no English dev set, which selects checkpoints")
    mnli = TASKS[MNLI]
    write_split(out, "train", read_file(glue, mnli, mnli.files[0], bad_rows=bad_rows))
    for kind, of_language in languages.items():
        for language, examples in of_language.items():
            write_split(out, split_name(kind, language), examples)
    write_label_dictionary(out / "labels.txt", NLI)


def read_rows(
    path: Path,
    needed: Sequence[str],
    make: Callable[[dict[str, str], str, int], Row],
    *,
    columns: Sequence[str] | None = None,
    bad_rows: str = REFUSE,
) -> Iterator[Row]:
    """``make(cells by column, "FILE, line N", number from 0)`` for each row of a table, plain or
    gzipped; at least one. ``needed``: required columns; ``columns``: all, for a file without a
    header; ``bad_rows``: refuse, or skip and count them. Raises UserError.
    """
    lines = enumerate(raw_lines(path), start=1)
    if columns is None:
        columns = _text(path, *next(lines, (1, b""))).split("\t")
        missing = [name for name in needed if name not in columns]
        if missing:
            header = f"expected the official header, with {', '.join(needed)}"
            raise UserError(f"{path}, line 1: no column '{missing[0]}'; {header}")
    skipped, first, count = 0, "", 0
    for number, raw in lines:
        where = f"{path}, line {number}"
        try:
            cells = _text(path, number, raw).split("\t")
            if len(cells) != len(columns):
                expected = f"{len(columns)} ({', '.join(columns)})"
                raise UserError(f"{where}: {len(cells)} columns, expected {expected}")
            row = make(dict(zip(columns, cells, strict=True)), where, count)
        except UserError as error:
            if bad_rows != SKIP:
                raise UserError(f"{error}; correct the row, or give --bad-rows skip") from None
            skipped += 1
            first = first or str(error)
            continue
        count += 1
        yield row
    if skipped:
        say(f"{skipped:,} bad rows were skipped; the first: {first}")
    if not count:
        raise UserError(f"{path}: no rows; replace it with the official file")


def _text(path: Path, number: int, raw: bytes) -> str:
    """A line without its end, and without the byte order mark that MRPC's files begin with."""
    line = decoded(raw, f"{path}, line {number}")
    if line.endswith("\r"):
        raise UserError(f"{path}, line {number}: Windows line end (CR LF); convert to plain LF")
    return line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line


def write_split(folder: Path, split: str, examples: Iterable[Example]) -> None:
    """Writes the files of one split."""
    make_folder(folder)
    count = 0
    with ExitStack() as stack:
        files = {}
        for example in examples:
            parts = {f"input{number}": text for number, text in enumerate(example.sentences)}
            parts["id"] = example.id
            if example.label is not None:
                parts["label"] = example.label
            for name, text in parts.items():
                if name not in files:
                    files[name] = stack.enter_context(writing(folder / f"{split}.{name}"))
                files[name].write(text + "\n")
            count += 1
    say(f"{split}: {count:,} examples")


def write_label_dictionary(path: Path, labels: Labels) -> None:
    """fairseq's dictionary of the classes, in their order; its counts are not used."""
    write_lines(path, (f"{name} 1" for name in labels.names))
