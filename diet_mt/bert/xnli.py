"""XNLI (Conneau et al. 2018, arXiv:1809.05053): one table of 19 columns for all its languages.

Its raw folder (``labelled.py``) has ``train``, which is MNLI's, and for each language
``valid_LANG`` and ``test_LANG``. All files named ``*.dev.tsv`` and ``*.test.tsv``, gzipped or not,
are read: languages published elsewhere in the same layout may lie beside the official ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..errors import UserError
from .glue import NLI, read_file, task_named
from .labelled import REFUSE, Example, examples, write_label_dictionary, write_split
from .table import TableRow, read_table

NAME = "XNLI"
SOURCE = "MNLI"  # whose training set and labels it takes
COLUMNS = ("language", "gold_label", "sentence1", "sentence2", "pairID")
SPLITS = {"valid": "dev", "test": "test"}
ENGLISH = "en"

_CODE = re.compile(r"[a-z]{2,3}(-[A-Za-z]+)?")


def split_name(kind: str, language: str) -> str:
    """``valid`` and ``sw`` -> ``valid_sw``."""
    return f"{kind}_{language}"


def language_of(split: str) -> str:
    """The inverse; a split without a language is in English."""
    return split.partition("_")[2] or ENGLISH


def read_languages(paths: Iterable[Path], bad_rows: str = REFUSE) -> Mapping[str, list[Example]]:
    """Language -> its examples, of all files together. Raises UserError where a file cannot be
    read, has a bad row, or has a language of another one.
    """
    found: dict[str, list[Example]] = {}
    came_from: dict[str, Path] = {}

    def make(row: TableRow, number: int) -> Example:
        language, sentences = row["language"], (row["sentence1"], row["sentence2"])
        if not _CODE.fullmatch(language):
            raise UserError(f"{row.where}: '{language}' is no code of a language")
        if not all(sentence.strip() for sentence in sentences):
            raise UserError(f"{row.where}: an empty sentence")
        label = NLI.checked(row["gold_label"], row.where)
        if came_from.setdefault(language, row.path) != row.path:
            raise UserError(
                f"{row.where}: language '{language}' is in {came_from[language].name}, too; "
                "leave one of them out"
            )
        example = Example(row["pairID"], sentences, label)
        found.setdefault(language, []).append(example)
        return example

    for path in paths:
        for _ in examples(read_table(path, COLUMNS), make, bad_rows=bad_rows):
            pass
    return dict(sorted(found.items()))


def files_of(folder: Path, kind: str) -> list[Path]:
    """The files of ``dev`` or ``test``. Raises UserError if there are none."""
    found = sorted({*folder.glob(f"*.{kind}.tsv"), *folder.glob(f"*.{kind}.tsv.gz")})
    if not found:
        raise UserError(f"{folder}: holds no *.{kind}.tsv or *.{kind}.tsv.gz; put XNLI's there")
    return found


def write(folder: Path, glue: Path, out: Path, bad_rows: str = REFUSE) -> None:
    """Writes the raw folder. Raises UserError as the readers; English must be in the dev files."""
    languages = {
        kind: read_languages(files_of(folder, name), bad_rows) for kind, name in SPLITS.items()
    }
    if ENGLISH not in languages["valid"]:
        raise UserError(f"{folder}: no English dev set, by which checkpoints are chosen")
    task = task_named(SOURCE)
    write_split(out, "train", read_file(glue, task, "train", bad_rows=bad_rows))
    for kind, of_language in languages.items():
        for language, found in of_language.items():
            write_split(out, split_name(kind, language), found)
    write_label_dictionary(out / "labels.txt", NLI)
