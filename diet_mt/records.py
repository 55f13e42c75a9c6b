"""What an evaluation leaves behind: one result is one JSON line, and its hypotheses lie beside it.

A results folder holds one file for each corpus, ``CORPUS.jsonl``, and a folder ``CORPUS`` with the
hypotheses. Results are written by ``scripts/evaluate.sh``, never by hand. A hypothesis file belongs
to exactly one row: evaluating the same training again replaces both.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .errors import UserError


@dataclass(frozen=True)
class Result:
    """One trained model, decoded and scored. BLEU and chrF from 0 to 100.

    A field added later needs a default, so that rows already written still read.
    """

    system: str  # what is compared: diet_rel, sinusoidal, ...
    arch: str  # fairseq's --arch
    positions: str  # the checkpoint's own description of its encoding; empty for stock fairseq
    seed: int
    corpus: str  # the data folder's name
    direction: str  # en-de
    test_set: str
    sentences: int
    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    beam: int
    lenpen: float
    checkpoint: str  # the file's name
    checkpoint_sha256: str
    updates: int  # that this checkpoint has had
    epoch: int  # epochs complete in this checkpoint
    parameters: int  # trained numbers, shared ones counted once
    sentences_per_second: float  # decoding alone, with the batches of the command
    tokens_per_second: float  # subwords written by the best hypotheses
    threads: int
    device: str
    date: str  # of the evaluation, UTC
    revision: str  # git describe, of the evaluation; empty outside a repository
    fairseq: str  # distribution and version
    torch: str
    sacrebleu: str
    train_command: str
    generate_command: str
    hypotheses: str  # path of the detokenized hypotheses, seen from the results folder
    hypotheses_sha256: str
    references_sha256: str
    train_revision: str = ""  # git describe, of the training's beginning
    bleu_mean: float = 0.0  # of SacreBLEU's bootstrap resamples of the test set
    bleu_ci: float = 0.0  # half of their 95% interval: bleu_mean - bleu_ci to bleu_mean + bleu_ci
    length_penalty: str = "fairseq"  # length^lenpen; or "gnmt": ((5 + length) / 6)^lenpen
    averaged: int = 1  # checkpoints whose weights were averaged
    train_tokens: int = 0  # target subwords, with end marks, that the updates saw
    words_per_second: float = 0.0  # of detokenized text, decoding alone

    def to_json(self) -> str:
        """One line, without its end."""
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False)


_KINDS = {"str": (str,), "int": (int,), "float": (int, float)}


def parse_result(line: str) -> Result:
    """The inverse of ``Result.to_json``. Raises UserError for anything else."""
    try:
        values = json.loads(line)
    except ValueError as error:
        raise UserError(f"not JSON ({error})") from None
    if not isinstance(values, dict):
        raise UserError("not a JSON object")
    for field in dataclasses.fields(Result):
        if field.name not in values:
            if field.default is dataclasses.MISSING:
                raise UserError(f"no field '{field.name}'")
            continue
        value = values[field.name]
        # bool is an int to Python, not to a reader of the record.
        if isinstance(value, bool) or not isinstance(value, _KINDS[str(field.type)]):
            raise UserError(f"field '{field.name}' is {value!r}, expected {field.type}")
    unknown = sorted(set(values) - {field.name for field in dataclasses.fields(Result)})
    if unknown:
        raise UserError(f"unknown field '{unknown[0]}'")
    return Result(**values)


def read_results(path: Path) -> list[Result]:
    """All rows of a file, in order. Raises UserError naming the file and the line."""
    try:
        with open(path, encoding="utf-8", newline="\n") as file:
            lines = file.read().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({error})") from None
    results = []
    for number, line in enumerate(lines, start=1):
        if line:
            try:
                results.append(parse_result(line))
            except UserError as error:
                raise UserError(f"{path}, line {number}: {error}") from None
    return results


def write_text(path: Path, text: str) -> None:
    """Writes a file that appears under its name only when it is whole; makes its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with open(part, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    os.replace(part, path)


def put_result(folder: Path, result: Result, hypotheses: str) -> Path:
    """Keeps ``result`` and the text of its hypotheses in ``folder``; returns the rows' file.

    Takes the place of the row with the same hypothesis file, if there is one. Safe to be called by
    several processes at a time.
    """
    rows = folder / f"{result.corpus}.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        results = read_results(rows) if rows.exists() else []
        others = [row for row in results if row.hypotheses != result.hypotheses]
        if len(others) == len(results):
            results.append(result)
        else:
            results = [result if row.hypotheses == result.hypotheses else row for row in results]
        write_text(folder / result.hypotheses, hypotheses)
        write_text(rows, "".join(row.to_json() + "\n" for row in results))
    return rows


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Holds the folder's advisory lock, so that no row written meanwhile gets lost."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def sha256(path: Path) -> str:
    """Hexadecimal digest of a file, read in pieces."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
