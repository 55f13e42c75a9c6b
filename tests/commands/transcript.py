"""What fairseq's commands print, as data."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field


@dataclass
class Translation:
    """One sentence's best hypotheses: scores in base 2, as printed."""

    texts: list[str] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    positional: list[list[float]] = field(default_factory=list)
    alignments: list[list[tuple[int, int]]] = field(default_factory=list)


def translations(stdout: str) -> dict[int, Translation]:
    """H, P and A lines of fairseq-generate and fairseq-interactive, by number of sentence."""
    found: dict[int, Translation] = {}
    for line in stdout.split("\n"):
        match = re.match(r"([HPA])-(\d+)\t(.*)", line)
        if not match:
            continue
        kind, number, rest = match.groups()
        entry = found.setdefault(int(number), Translation())
        if kind == "H":
            score, _, text = rest.partition("\t")
            entry.scores.append(float(score))
            entry.texts.append(text)
        elif kind == "P":
            entry.positional.append([float(value) for value in rest.split()])
        else:
            pairs = [pair.split("-") for pair in rest.split()]
            entry.alignments.append([(int(source), int(target)) for source, target in pairs])
    return found


def texts(stdout: str) -> list[str]:
    """The first hypothesis of each sentence, in the order of the input."""
    found = translations(stdout)
    return [found[number].texts[0] for number in sorted(found)]


def losses(stdout: str) -> dict[int, str]:
    """Update -> training loss, as printed with ``--log-format json --log-interval 1``."""
    return {
        int(entry["num_updates"]): entry["loss"]
        for entry in json_lines(stdout, "train_inner")
        if "loss" in entry
    }


def epoch_losses(stdout: str) -> dict[int, str]:
    """Epoch -> the average training loss that fairseq prints at its end."""
    return {int(entry["epoch"]): entry["train_loss"] for entry in json_lines(stdout, "train")}


def valid_losses(stdout: str) -> dict[int, str]:
    """Update -> validation loss, as printed with ``--log-format json``."""
    found = json_lines(stdout, "valid")
    return {int(entry["valid_num_updates"]): entry["valid_loss"] for entry in found}


def measured_loss(stdout: str, subset: str) -> str:
    """The loss that fairseq-validate prints with ``--log-format json``."""
    found: str = json_lines(stdout, subset)[-1][f"{subset}_loss"]
    return found


def json_lines(stdout: str, tag: str) -> list[dict[str, str]]:
    """Log lines such as ``... | INFO | train_inner | {...}``."""
    start = f"| {tag} | {{"
    return [
        json.loads(line[line.index(start) + len(start) - 1 :])
        for line in stdout.split("\n")
        if start in line
    ]
