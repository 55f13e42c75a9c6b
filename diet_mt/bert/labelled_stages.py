"""GLUE and XNLI: from the official files to what the task diet_sentence_prediction reads.

raw -> pieces -> input0, [input1,] label
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..corpora.binarized import sentences_in
from ..corpora.preprocess import need_fairseq, preprocess, shares, shown
from ..errors import UserError
from ..files import copy, make_folder
from ..stages.engine import Count, Preparation, Stage, lines_in, room_for
from . import glue, xnli
from .labelled import REFUSE
from .pair_pieces import SHORTEST, split_folder
from .table import find_table
from .tokenizer import file_of
from .vocabulary import checksum_of


@dataclass(frozen=True)
class LabelledSettings:
    """How examples become numbers."""

    vocab: Path  # the bin folder of a pretraining corpus
    max_length: int  # tokens of an example with its marks; what is longer is cut
    bad_rows: str = REFUSE  # or skip
    workers: int = 1  # processes; the result is the same for any number


def preparation_of_glue(
    out: Path, task: glue.Task, folder: Path, given: LabelledSettings
) -> Preparation:
    """``folder/TASK/*.tsv`` -> ``out``.

    Raises:
        UserError: an official file is not there; or as ``_preparation``.
    """
    if not (out / "raw").exists():
        for file in task.files:
            find_table(folder / task.name, file.name)
    make_raw = partial(_write_glue, folder, task, given.bad_rows)
    stage = Stage("raw", f"{task.name} from {folder}", make_raw)
    parts = [f"input{number}" for number in range(len(task.sentences))]
    return _preparation(out, task.name, stage, parts, task.labels.is_score, given)


def preparation_of_xnli(
    out: Path, folder: Path, mnli: Path, given: LabelledSettings
) -> Preparation:
    """XNLI's dev and test files, MNLI's training file -> ``out``.

    Raises:
        UserError: an official file is not there; or as ``_preparation``.
    """
    if not (out / "raw").exists():
        for kind in xnli.SPLITS.values():
            xnli.files_of(folder, kind)
        find_table(mnli / xnli.SOURCE, "train.tsv")

    def make_raw(to: Path) -> None:
        xnli.write(folder, mnli, to, given.bad_rows)

    stage = Stage("raw", f"{folder}, and {xnli.SOURCE} from {mnli}", make_raw)
    return _preparation(out, xnli.NAME, stage, ["input0", "input1"], False, given)


def _write_glue(folder: Path, task: glue.Task, bad_rows: str, to: Path) -> None:
    glue.write(folder, task, to, bad_rows)


def _preparation(
    out: Path, name: str, raw: Stage, parts: list[str], scores: bool, given: LabelledSettings
) -> Preparation:
    """``parts``: the sentences of an example; ``scores``: its label is a number.

    Raises:
        UserError: the vocabulary is not there; or the examples are to be too short.
    """
    need_fairseq(out)
    if given.max_length < SHORTEST:
        raise UserError(f"--max-length {given.max_length}: must be at least {SHORTEST}")
    tokenizer, checksum = file_of(given.vocab), checksum_of(given.vocab)
    text, dictionary = out / "pieces", given.vocab / "dict.txt"
    binarize = partial(_Binarizer, out, given.workers)
    stages = [
        raw,
        Stage(
            "pieces",
            f"in subwords, cut to {given.max_length}",
            partial(_split, out / "raw", given),
            partial(room_for, 130, out / "raw"),
        ),
        *(binarize(part, text, dictionary).stage() for part in parts),
    ]
    if scores:  # fairseq reads them as text
        stages.append(Stage("label", "the scores", partial(_copy_labels, out / "raw")))
    else:
        stages.append(binarize("label", out / "raw", out / "raw" / "labels.txt").stage())
    # Says what the pieces are, for who reads only this folder.
    stages.append(Stage(tokenizer.name, "the tokenizer", partial(copy, tokenizer)))
    words = f"{name} MAX_LENGTH={given.max_length} BAD_ROWS={given.bad_rows} vocabulary={checksum}"
    return Preparation(out, words, stages, partial(_counts, out), text="train.input0")


def _split(raw: Path, given: LabelledSettings, to: Path) -> None:
    split_folder(raw, to, given.vocab, given.max_length, given.workers)


def _copy_labels(raw: Path, to: Path) -> None:
    make_folder(to)
    for file in sorted(raw.glob("*.label")):
        copy(file, to / file.name)


@dataclass(frozen=True)
class _Binarizer:
    """Makes the folder of one part: its splits, as fairseq has them."""

    out: Path
    workers: int
    part: str
    text: Path  # folder with SPLIT.PART
    dictionary: Path

    def stage(self) -> Stage:
        does = shown([*self._options(), "--destdir", self.out / self.part])
        return Stage(self.part, does, self._make, restarts=True)  # fairseq cannot continue

    def _files(self) -> list[Path]:
        return sorted(self.text.glob(f"*.{self.part}"))

    def _options(self) -> list[object]:
        files = ",".join(map(str, self._files())) or self.text / f"SPLIT.{self.part}"
        options = ["--only-source", "--srcdict", self.dictionary]
        return [*options, "--workers", shares(self.workers), "--testpref", files]

    def _make(self, to: Path) -> None:
        to.mkdir()
        log = self.out / f"preprocess.{self.part}.log"
        preprocess(self._options(), to, log, f"fairseq-preprocess {self.part}")
        # The sets of the list are now test, test1, test2, ...: each gets its own name.
        named = to / "named"
        named.mkdir()
        for number, file in enumerate(self._files()):
            for end in ("bin", "idx"):
                (to / f"test{number or ''}.{end}").rename(named / f"{file.stem}.{end}")
        for file in named.iterdir():
            file.rename(to / file.name)
        named.rmdir()


def _counts(out: Path) -> Iterator[Count]:
    for file in sorted((out / "raw").iterdir()):
        split, _, part = file.name.partition(".")
        if not part.startswith(("input", "label")) or file.name == "labels.txt":
            continue
        index, text = out / part / f"{split}.idx", out / part / file.name
        found = lines_in(text) if text.exists() else sentences_in(index)
        yield f"{split}, {part}", found, lines_in(file)
