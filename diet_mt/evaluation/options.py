"""Command-line options as data for rows; companion files of a training.

``{"command": ["fairseq-train", "data/x/bin"], "lr": 0.003, "share-all-embeddings": true}``; a
command is one line for a shell.
"""

from __future__ import annotations

import datetime
import math
import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Union

from ..system.errors import UserError, as_utf8
from ..system.files import read_text

Option = Union[str, bool, int, float, None]
Options = dict[str, Union[Option, list[str]]]
COMMAND = "command"  # name of the leading words
BEST = "checkpoint_best.pt"
RECORD = "pretrained.json"  # facts about the checkpoint that a training was fine-tuned from
# Options of fairseq whose value is a path, and the folder that stands for its parents in a row.
FOLDERS = {
    "--save-dir": "checkpoints",
    "--path": "checkpoints",
    "--tensorboard-logdir": "checkpoints",
    "--user-dir": "",
}
_WITH_FOLDER = ("--path", "--tensorboard-logdir")  # named by the file and its folder
# Options of fairseq about the machine, not the training.
_PLACES = frozenset({*FOLDERS, "--cpu", "--num-workers"})
_ALIASES = {
    "-s": "--source-lang",
    "-t": "--target-lang",
    "-a": "--arch",
    "--max-sentences": "--batch-size",
    "--max-sentences-valid": "--batch-size-valid",
}
_OPTION = re.compile("--.*|-[A-Za-z]", re.DOTALL)  # not a negative number
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(?P<rest>\.\d{1,15})?(?P<exponent>[eE][+-]?\d{1,2})?")
# Together the size of an update: fewer GPUs take more batches for it.
_BATCH = {"--max-tokens": "tokens", "--batch-size": "sentences"}
_BATCHES = ("--update-freq", "--distributed-world-size")


def options_of(words: Iterable[str]) -> dict[str, list[str]]:
    """Option -> the words of its last value; "" -> the words before the first option."""
    options: dict[str, list[str]] = {}
    option = ""
    for word in words:
        if _OPTION.fullmatch(word):
            name, equals, value = word.partition("=")
            option = _ALIASES.get(name, name)
            options[option] = [value] if equals else []
        else:
            options.setdefault(option, []).append(word)
    return options


def parse(words: Iterable[str]) -> Options:
    """A command as data: numbers as numbers, flags as True."""
    options: Options = {}
    for name, values in options_of(words).items():
        if not name:
            options[COMMAND] = values
        elif len(values) > 1:
            options[name.lstrip("-")] = values
        else:
            options[name.lstrip("-")] = number(values[0]) if values else True
    return options


def number(text: str) -> str | int | float:
    """The number in a text; any other text unchanged."""
    match = _NUMBER.fullmatch(text)
    if not match:
        return text
    return float(text) if match["rest"] or match["exponent"] else int(text)


def shell(options: Mapping[str, object]) -> str:
    """The inverse of :func:`parse`, as one line for a shell."""
    words: list[str] = []
    for name, value in options.items():
        if name != COMMAND:
            words.append(f"--{name}")
        if value is not True:
            words += map(str, value if isinstance(value, list) else [value])
    return shlex.join(words)


def assignments(options: Mapping[str, object]) -> str:
    """``share-all-embeddings max-source-positions=31``."""
    return " ".join(n if value is True else f"{n}={value}" for n, value in options.items())


def difference(expected: Mapping[str, object], given: Mapping[str, object]) -> str:
    """The first entry that differs, ``--lr: expected '0.1', got '0.2'``; empty: none."""
    sides = (expected, given)
    for name in {**expected, **given}:
        if expected.get(name) != given.get(name):
            old, new = (f"'{side[name]}'" if name in side else "none" for side in sides)
            return f"{name}: expected {old}, got {new}"
    return ""


def comparable(training: Options) -> dict[str, object]:
    """The options of a training that are the same on any machine and with any seed."""
    options: dict[str, object] = {
        "the command" if name == COMMAND else f"--{name}": value
        for name, value in training.items()
        if f"--{name}" not in _PLACES and name != "seed"
    }
    given = [name for name in _BATCH if name in options]
    size = [options.get(name, 1) for name in (*given, *_BATCHES)]
    numbers = [value for value in size if type(value) is int]
    if len(given) == 1 and len(numbers) == len(size):
        options = {k: value for k, value in options.items() if k not in (*given, *_BATCHES)}
        options[f"{_BATCH[given[0]]} of an update"] = math.prod(numbers)
    return options


def portable(command: Iterable[str]) -> list[str]:
    """The words of a command without the folders of the machine: of absolute paths the last two
    names of data, the last one of folders of checkpoints and of the plugin.
    """
    words, option = [], ""
    for word in map(as_utf8, command):
        key, equals, value = word.partition("=")
        if not (equals and key.startswith("--")):
            key, equals, value = option, "", word
        words.append((f"{key}=" if equals else "") + _shortened(key, value))
        option = word if word.startswith("--") else ""
    return words


def _shortened(option: str, value: str) -> str:
    if not os.path.isabs(value):
        return value
    parts = Path(value).parts[1:]
    if option in FOLDERS:
        return os.path.join(FOLDERS[option], *parts[-2 if option in _WITH_FOLDER else -1 :])
    return os.path.join("data", *parts[-2:])


def portable_file(file: Path) -> str:
    """A file relative to the working directory; of one elsewhere the name alone."""
    path, here = Path(os.path.abspath(file)), Path.cwd()
    return as_utf8(str(path.relative_to(here)) if path.is_relative_to(here) else path.name)


def as_data(command: Iterable[str]) -> Options:
    """The words of a command as rows store it, without the folders of the machine."""
    return parse(portable(command))


def best_in(path: Path) -> Path:
    """The best checkpoint of a folder of a training; of a file, the file."""
    return path / BEST if path.is_dir() else path


def companion(checkpoint: Path, name: str) -> str:
    """``command`` or ``revision``, next to the checkpoints of a training; empty if missing."""
    file = checkpoint.parent / name
    if not file.is_file():
        return ""
    return read_text(file).strip()


def training_of(checkpoint: Path) -> Options:
    """Options of its training; empty: another program's. Raises UserError for a damaged file."""
    try:
        return as_data(shlex.split(companion(checkpoint, "command")))
    except ValueError as error:
        raise UserError(f"{checkpoint.parent / 'command'}: damaged ({error})") from None


def revision(folder: Path) -> str:
    """``git describe`` of the project in ``folder``; empty if it is in no repository."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty"]
    try:
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return outcome.stdout.strip() if outcome.returncode == 0 else ""


def today() -> str:
    """The date, UTC, as rows have it."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")


def fairseq_version() -> str:
    """The installed distribution of fairseq with its version: ``fairseq-fixed 0.12.3.1``."""
    from importlib import metadata  # not needed for --help

    for name in ("fairseq-fixed", "fairseq"):
        try:
            return f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
    return ""
