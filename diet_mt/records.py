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
import math
import os
import shlex
import unicodedata
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
    date: str  # of the decoding, UTC
    revision: str  # git describe, of the decoding; empty outside a repository
    fairseq: str  # distribution and version, of the decoding
    torch: str  # version, of the decoding
    sacrebleu: str  # version, of the scoring
    train_command: str
    generate_command: str
    hypotheses: str  # path of the detokenized hypotheses, seen from the results folder
    hypotheses_sha256: str
    references_sha256: str
    bleu_mean: float  # of SacreBLEU's bootstrap resamples of the test set
    bleu_ci: float  # half of their 95% interval: bleu_mean - bleu_ci to bleu_mean + bleu_ci
    train_revision: str = ""  # git describe, of the training's beginning
    length_penalty: str = "fairseq"  # length^lenpen; or "gnmt": ((5 + length) / 6)^lenpen
    averaged: int = 1  # checkpoints whose weights were averaged
    train_tokens: int = 0  # target subwords, with end marks, that the updates saw
    words_per_second: float = 0.0  # of detokenized text, decoding alone
    options: str = ""  # given to fairseq-generate beyond those that evaluate.sh sets
    subwords: str = "bpe"  # or "spm"

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
    result = Result(**values)
    _check(result)
    return result


_PERCENT = ("bleu", "bleu_mean", "chrf")
_SIGNED = ("seed", "lenpen")
_COMMANDS = ("train_command", "generate_command")


def _check(result: Result) -> None:
    """Raises UserError for a value of the right type that no evaluation can have written."""
    for name, value in vars(result).items():
        wrong = _wrong_text(value) if isinstance(value, str) else _wrong_number(name, value)
        if wrong:
            raise UserError(f"field '{name}' is {value!r}, expected {wrong}")
    for name in _COMMANDS:
        try:
            shlex.split(getattr(result, name))
        except ValueError as error:
            raise UserError(f"field '{name}' is no shell command ({error})") from None


def _wrong_text(value: str) -> str:
    """What was expected; empty if nothing is wrong. A record is shown line by line, in UTF-8."""
    bad = any(unicodedata.category(letter) in ("Cc", "Cs") for letter in value)
    return "text without control characters and halves of surrogate pairs" if bad else ""


def _wrong_number(name: str, value: float) -> str:
    """What was expected; empty if nothing is wrong."""
    try:
        finite = math.isfinite(value)
    except OverflowError:  # a whole number beyond all decimal ones
        finite = False
    if not finite:
        return "a finite number"
    if name in _PERCENT and not 0 <= value <= 100:
        return "0 to 100"
    return "0 or more" if value < 0 and name not in _SIGNED else ""


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

    Takes the place of the row with the same hypothesis file, if there is one; where both are there
    already, nothing is written. Safe to be called by several processes at a time.

    Raises UserError for values that no reader would take, and where that row is of another
    training.
    """
    _check(result)
    rows = folder / f"{result.corpus}.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        results = read_results(rows) if rows.exists() else []
        if _is_kept(folder, results, result):
            return rows
        _refuse_another_training(results, result)
        others = [row for row in results if row.hypotheses != result.hypotheses]
        if len(others) == len(results):
            results.append(result)
        else:
            results = [result if row.hypotheses == result.hypotheses else row for row in results]
        write_text(folder / result.hypotheses, hypotheses)
        write_text(rows, "".join(row.to_json() + "\n" for row in results))
    return rows


def _is_kept(folder: Path, results: list[Result], result: Result) -> bool:
    path = folder / result.hypotheses
    return result in results and path.is_file() and sha256(path) == result.hypotheses_sha256


# Beside the command of its training, what tells a row from another of the same name.
_TELLING = ("arch", "positions", "parameters", "averaged", "subwords", "references_sha256")


def _refuse_another_training(results: list[Result], result: Result) -> None:
    """Raises UserError if ``result`` would take the place of a row that it does not measure anew.

    A hypothesis file is named after corpus, architecture, seed and decoding. Trainings that differ
    in anything else would silently replace each other.
    """
    old = next((row for row in results if row.hypotheses == result.hypotheses), None)
    if old is None:
        return
    there, here = ({name: str(getattr(row, name)) for name in _TELLING} for row in (old, result))
    if old.checkpoint_sha256 != result.checkpoint_sha256:
        there, here = there | _training(old.train_command), here | _training(result.train_command)
    for name in {**there, **here}:
        if there.get(name) != here.get(name):
            was, now = (f"'{values.get(name, 'not given')}'" for values in (there, here))
            raise UserError(
                f"{result.corpus}.jsonl has {old.hypotheses} of another training or test set "
                f"({name or 'the command'}: {was} there, {now} here); set SYSTEM to another name "
                "for this one"
            )


# Options of fairseq-train that say where a training ran, not what it was.
_PLACES = ("--seed", "--save-dir", "--user-dir", "--tensorboard-logdir", "--cpu", "--num-workers")
# Together the size of an update: fewer GPUs take more batches for it.
_UPDATE = ("--max-tokens", "--update-freq", "--distributed-world-size")


def _training(command: str) -> dict[str, str]:
    """Option of a training -> its value, the last one given; "" -> program and data."""
    found: dict[str, list[str]] = {}
    option = ""
    for word in shlex.split(command):
        if word.startswith("--"):
            option, equals, value = word.partition("=")
            found[option] = [value] if equals else []
        else:
            found.setdefault(option, []).append(word)
    options = {name: shlex.join(words) for name, words in found.items() if name not in _PLACES}
    size = [options.get(name, "1") for name in _UPDATE]
    if _UPDATE[0] in options and all(value.isdecimal() for value in size):
        options = {name: value for name, value in options.items() if name not in _UPDATE}
        options["tokens of an update"] = str(math.prod(map(int, size)))
    return options


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
