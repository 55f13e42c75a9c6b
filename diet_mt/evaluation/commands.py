"""Commands as records keep them: what they say, without where they ran.

A command is one line for a shell.
"""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, pairwise
from pathlib import Path

from ..errors import UserError, as_utf8

# Options of fairseq whose value is a path, and the folder that it stands in when written down.
FOLDERS = {
    "--save-dir": "checkpoints",
    "--path": "checkpoints",
    "--tensorboard-logdir": "checkpoints",
    "--user-dir": "",
}
_WITH_FOLDER = ("--path", "--tensorboard-logdir")  # said by its own name and that of its folder
# Options of fairseq that say where something ran, not what it was.
PLACES = frozenset({*FOLDERS, "--cpu", "--num-workers"})
# Other names of fairseq's options.
_SAME = {
    "-s": "--source-lang",
    "-t": "--target-lang",
    "-a": "--arch",
    "--max-sentences": "--batch-size",
    "--max-sentences-valid": "--batch-size-valid",
}
_OPTION = re.compile("--.*|-[A-Za-z]", re.DOTALL)  # no number


def options_of(words: Iterable[str]) -> dict[str, list[str]]:
    """Option -> the words of its value, the last one given; "" -> what comes first."""
    found: dict[str, list[str]] = {}
    option = ""
    for word in words:
        if _OPTION.fullmatch(word):
            name, equals, value = word.partition("=")
            option = _SAME.get(name, name)
            found[option] = [value] if equals else []
        else:
            found.setdefault(option, []).append(word)
    return found


def words_of(command: str, option: str = "") -> list[str]:
    """Its words; those of ``option=value`` apart. Raises UserError for a quote left open."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UserError(f"not a shell command ({error})") from None
    if not option:
        return words
    parts = (word.split("=", 1) if word.startswith(f"{option}=") else [word] for word in words)
    return list(chain.from_iterable(parts))


def values_of(command: str, option: str) -> list[str]:
    """The value of the option, each time that it is given."""
    return [value for name, value in pairwise(words_of(command, option)) if name == option]


def difference(there: Mapping[str, object], here: Mapping[str, object]) -> str:
    """The first entry in which they differ, ``--lr: '0.1' there, '0.2' here``; empty: none."""
    sides = (there, here)
    for name in {**there, **here}:
        if there.get(name) != here.get(name):
            was, now = (f"'{side[name]}'" if name in side else "not given" for side in sides)
            return f"{name}: {was} there, {now} here"
    return ""


# Together the size of an update: fewer GPUs take more batches for it.
_BATCH = {"--max-tokens": "tokens", "--batch-size": "sentences"}
_BATCHES = ("--update-freq", "--distributed-world-size")


def training_options(command: str) -> dict[str, str]:
    """Option of a training -> its value, wherever it ran and whatever its seed."""
    options = {
        name or "the command": _settled(shlex.join(words))
        for name, words in options_of(words_of(command)).items()
        if name not in PLACES and name != "--seed"
    }
    given = [name for name in _BATCH if name in options]
    size = [options.get(name, "1") for name in (*given, *_BATCHES)]
    if len(given) == 1 and all(value.isdecimal() for value in size):
        options = {k: value for k, value in options.items() if k not in (*given, *_BATCHES)}
        options[f"{_BATCH[given[0]]} of an update"] = str(math.prod(map(int, size)))
    return options


def _settled(value: str) -> str:
    """A number as it is always written: ``0`` for ``0.0``, ``2e-5`` and ``0.00002`` alike."""
    try:
        number = float(value)
    except ValueError:
        return value
    return str(int(number)) if number.is_integer() else repr(number)


def portable(command: str) -> str:
    """A command without the folders of the machine it ran on, as a record takes it.

    Absolute paths keep the names that say something: the last two of data, the last of a
    checkpoint folder or of the plugin.
    """

    def shortened(option: str, value: str) -> str:
        if not os.path.isabs(value):
            return value
        parts = Path(value).parts[1:]
        keep = 2 if option in _WITH_FOLDER else 1
        if option in FOLDERS:
            return os.path.join(FOLDERS[option], *parts[-keep:])
        return os.path.join("data", *parts[-2:])

    return _rewritten(as_utf8(command), shortened)


def general(command: str, arch: str = "") -> str:
    """``command`` whatever the seed; with ``arch`` in the place of the architecture, if given."""
    saved = " ".join(options_of(words_of(command)).get("--save-dir", []))
    fixed = {"--seed": "SEED", "--save-dir": "CHECKPOINTS", **({"--arch": arch} if arch else {})}

    def generalized(option: str, value: str) -> str:
        if option in fixed:
            return fixed[option]
        if option == "--path":
            return f"CHECKPOINTS/{Path(value).name}"
        if saved and value.startswith(f"{saved}/"):  # logs beside the checkpoints
            return "CHECKPOINTS" + value[len(saved) :]
        return value

    return _rewritten(command, generalized)


def _rewritten(command: str, change: Callable[[str, str], str]) -> str:
    """``command`` with ``change(option, word)`` for each word: what stands after an option or after
    its =; of other words the option is empty.
    """
    words, option = [], ""
    for word in words_of(command):
        key, equals, value = word.partition("=")
        if not (equals and key.startswith("--")):
            key, equals, value = option, "", word
        words.append((f"{key}=" if equals else "") + change(key, value))
        option = word if word.startswith("--") else ""
    return shlex.join(words)
