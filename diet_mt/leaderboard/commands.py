"""The commands behind a group, each once."""

from __future__ import annotations

import shlex
from pathlib import Path

from ..evaluation.groups import Group, Line

# In a command, for any system of the table.
ARCH = "ARCH"


def commands(group: Group) -> list[str]:
    """Trainings, then evaluations, with SEED, CHECKPOINTS and ARCH for what differs in a group."""
    train = {general(result.train_command, ARCH): None for result in group.results}
    generate = {general(result.generate_command): None for result in group.results}
    return [command for command in [*train, *generate] if command]


def trained_differently(line: Line) -> bool:
    """Whether the seeds of a line differ in more than the seed."""
    return len({general(result.train_command) for result in line.results}) > 1


def general(command: str, arch: str = "") -> str:
    """``command`` whatever the seed; with ``arch`` in the place of the architecture, if given."""
    words = shlex.split(command)
    saved = words[words.index("--save-dir") + 1] if "--save-dir" in words[:-1] else None
    for place in range(1, len(words)):
        option, value = words[place - 1], words[place]
        if option == "--seed":
            words[place] = "SEED"
        elif option == "--save-dir":
            words[place] = "CHECKPOINTS"
        elif option == "--path":
            words[place] = f"CHECKPOINTS/{Path(value).name}"
        elif option == "--arch" and arch:
            words[place] = arch
        elif saved and value.startswith(f"{saved}/"):  # logs beside the checkpoints
            words[place] = "CHECKPOINTS" + value[len(saved) :]
    return shlex.join(words)
