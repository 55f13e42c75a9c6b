"""GLUE and XNLI: from the official files to what the task diet_sentence_prediction reads.

raw -> pieces -> input0, [input1,] label
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..corpora.binarized import need_fairseq, preprocess, sentences_in, shares, shown
from ..errors import UserError
from ..files import copy, lines_in, make_folder
from ..stages.engine import Count, Preparation, Stage, room_for
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
    """``folder/TASK/*.tsv`` -> ``out``. Raises UserError where an official file is not there; or as
    ``_preparation``.
    """
    if not (out / "raw").exists():
        for file in task.files:
            find_table(folder / task.name, file.name)

    make_raw = partial(glue.write, folder, task, bad_rows=given.bad_rows)
    stage = Stage("raw", f"{task.name} from {folder}", make_raw)
    parts = [f"input{number}" for number in range(len(task.sentences))]
    return _preparation(out, task.name, stage, parts, task.labels.is_score, given)


def preparation_of_xnli(
    out: Path, folder: Path, mnli: Path, given: LabelledSettings
) -> Preparation:
    """XNLI's dev and test files, MNLI's training file -> ``out``. Raises UserError where an
    official file is not there; or as ``_preparation``.
    """
    if not (out / "raw").exists():
        for kind in xnli.SPLITS.values():
            xnli.files_of(folder, kind)
        find_table(mnli / xnli.SOURCE, "train.tsv")

    make_raw = partial(xnli.write, folder, mnli, bad_rows=given.bad_rows)
    stage = Stage("raw", f"{folder}, and {xnli.SOURCE} from {mnli}", make_raw)
    return _preparation(out, xnli.NAME, stage, ["input0", "input1"], False, given)


def _preparation(
    out: Path, name: str, raw: Stage, parts: list[str], scores: bool, given: LabelledSettings
) -> Preparation:
    """``parts``: the sentences of an example; ``scores``: its label is a number. Raises UserError
    where the vocabulary is not there; or the examples are to be too short.
    """
    need_fairseq(out)
    if given.max_length < SHORTEST:
        raise UserError(f"--max-length {given.max_length}: must be at least {SHORTEST}")
    tokenizer, checksum = file_of(given.vocab), checksum_of(given.vocab)
    raw_text, pieces, dictionary = out / "raw", out / "pieces", given.vocab / "dict.txt"

    def split(to: Path) -> None:
        split_folder(raw_text, to, given.vocab, given.max_length, given.workers)

    def copy_scores(to: Path) -> None:
        make_folder(to)
        for file in sorted(raw_text.glob("*.label")):
            copy(file, to / file.name)

    does = f"in subwords, cut to {given.max_length}"
    stages = [raw, Stage("pieces", does, split, partial(room_for, 130, raw_text))]
    stages += [_binarized(out, part, pieces, dictionary, given.workers) for part in parts]
    if scores:  # fairseq reads them as text
        stages.append(Stage("label", "the scores", copy_scores))
    else:
        labels = raw_text / "labels.txt"
        stages.append(_binarized(out, "label", raw_text, labels, given.workers))
    # Says what the pieces are, for who reads only this folder.
    stages.append(Stage(tokenizer.name, "the tokenizer", partial(copy, tokenizer)))
    words = f"{name} MAX_LENGTH={given.max_length} BAD_ROWS={given.bad_rows} vocabulary={checksum}"
    return Preparation(out, words, stages, partial(_counts, out), text="train.input0")


def _binarized(out: Path, part: str, text: Path, dictionary: Path, workers: int) -> Stage:
    """Makes the folder of one part from ``text/SPLIT.PART``: its splits, as fairseq has them."""

    def files() -> list[Path]:
        return sorted(text.glob(f"*.{part}"))

    def options() -> list[object]:
        some = ",".join(map(str, files())) or text / f"SPLIT.{part}"
        own = ["--only-source", "--srcdict", dictionary]
        return [*own, "--workers", shares(workers), "--testpref", some]

    def make(to: Path) -> None:
        preprocess(options(), to, out / f"preprocess.{part}.log", f"fairseq-preprocess {part}")
        # The sets of the list are now test, test1, test2, ...: each gets its own name.
        named = to / "named"
        named.mkdir()
        for number, file in enumerate(files()):
            for end in ("bin", "idx"):
                (to / f"test{number or ''}.{end}").rename(named / f"{file.stem}.{end}")
        for file in named.iterdir():
            file.rename(to / file.name)
        named.rmdir()

    # fairseq cannot continue.
    return Stage(part, shown(options(), out / part), make, restarts=True)


def _counts(out: Path) -> Iterator[Count]:
    for file in sorted((out / "raw").iterdir()):
        split, _, part = file.name.partition(".")
        if not part.startswith(("input", "label")) or file.name == "labels.txt":
            continue
        index, text = out / part / f"{split}.idx", out / part / file.name
        found = lines_in(text) if text.exists() else sentences_in(index)
        yield f"{split}, {part}", found, lines_in(file)
