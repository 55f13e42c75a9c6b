"""Validation perplexity over the updates of pretraining, a curve for each training.

Perplexities are comparable where the validation text is masked in the same way. fairseq draws the
masks from ``--seed``, the number of the sequence and the epoch, and validates with epoch 1 always,
so they are the same throughout a training and for all systems; but not for other sequences, another
seed, or another distribution of fairseq. Other sequences are refused, another seed is said.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, Union

from ..drawing import pyplot, save
from ..errors import UserError
from ..evaluation.checkpoint import portable
from ..evaluation.json_rows import Row, read_rows, write_rows

# What decides which sequences are validated, and how they are masked.
_SAME = ("data", "--task", "--tokens-per-sample", "--sample-break-mode", "--mask-prob")
_LINE = re.compile(r"\| valid \| (.*)")
_PARAMETERS = re.compile(r"num\. shared model params: ([\d,]+)")


@dataclass(frozen=True)
class Curve(Row):
    """One training. ``points``: [updates, loss in bits, perplexity]; None for what is no number."""

    system: str  # arch without roberta_ and its size
    arch: str
    segments: str
    seed: int
    parameters: int  # trained numbers; 0: unknown
    settings: dict[str, str]  # what must be the same for curves to be comparable
    points: list[list[Union[float, None]]]
    revision: str
    command: str

    @property
    def finite(self) -> list[tuple[float, float]]:
        """(updates, perplexity) of the points where that is a number."""
        return [(n, ppl) for n, _, ppl in self.points if n is not None and ppl is not None]

    @property
    def last(self) -> float:
        """Its last perplexity, infinite where that is no number."""
        ppl = self.points[-1][2]
        return math.inf if ppl is None else ppl


def read_log(text: str) -> list[list[float | None]]:
    """The points of a log in fairseq's ``json`` or ``simple`` format.

    Where a training was continued, updates come twice, and the later ones count.
    """
    points: dict[int, list[float | None]] = {}
    for line in text.split("\n"):
        match = _LINE.search(line)
        values = _values(match[1]) if match else {}
        if {"num_updates", "loss", "ppl"} <= values.keys():
            updates = int(values["num_updates"])
            points[updates] = [updates, _number(values["loss"]), _number(values["ppl"])]
    return [points[updates] for updates in sorted(points)]


def _values(text: str) -> dict[str, str]:
    """``{"valid_loss": "5.1"}`` or ``valid on 'valid' subset | loss 5.1`` -> loss: 5.1."""
    if text.startswith("{"):
        return {name.removeprefix("valid_"): str(value) for name, value in json.loads(text).items()}
    parts = (part.strip().rpartition(" ") for part in text.split("|"))
    return {name: value for name, _, value in parts}


def _number(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def read_training(folder: Path) -> Curve:
    """The curve of a training. Raises UserError where its files are missing or hold none."""
    try:
        log = (folder / "train.log").read_text(encoding="utf-8", errors="replace")
        command = (folder / "command").read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UserError(
            f"{error.filename}: cannot be read ({error.strerror}); give a folder that "
            "diet-mt pretrain has trained in"
        ) from None
    points = read_log(log)
    if not points:
        raise UserError(f"{folder / 'train.log'}: no validation in it; train on")
    options = options_of(command)
    revision = folder / "revision"
    parameters = _PARAMETERS.search(log)
    arch = options.get("--arch", "")
    return Curve(
        system=arch.removeprefix("roberta_").rpartition("_")[0],
        arch=arch,
        segments=options.get("--segment-encoding", "none"),
        seed=int(options.get("--seed", 1)),
        parameters=int(parameters[1].replace(",", "")) if parameters else 0,
        settings={name.lstrip("-"): options.get(name, "") for name in _SAME},
        points=points,
        revision=revision.read_text(encoding="utf-8").strip() if revision.is_file() else "",
        command=portable(command),
    )


def options_of(command: str) -> dict[str, str]:
    """The options of a fairseq-train command with their values, and ``data``: its folder's name."""
    words = shlex.split(command)
    found = {"data": "/".join(Path(words[1]).parts[-2:])} if len(words) > 1 else {}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            found[name] = value if equals else following
    return found


def draw(logs: Sequence[Path], out: Path, kind: str) -> None:
    """Writes OUT.jsonl, and the picture OUT.KIND.

    ``logs``: folders of trainings, their logs, or curves that this wrote. Raises UserError.
    """
    curves: list[Curve] = []
    for path in logs:
        if path.suffix == ".jsonl":
            curves += read_rows(Curve, path)
        else:
            curves.append(read_training(path if path.is_dir() else path.parent))
    if not curves:
        raise UserError(f"{logs[0]}: holds no curves")
    note = check_comparable(curves)
    if note:
        print(note, file=sys.stderr)
    write_rows(out.with_name(f"{out.name}.jsonl"), curves)
    plot(curves, out.with_name(f"{out.name}.{kind}"))


def check_comparable(curves: Sequence[Curve]) -> str:
    """What a reader must know about the curves; empty if nothing.

    Raises:
        UserError: not all were validated on the same sequences, masked as often.
    """
    first = curves[0]
    for curve in curves[1:]:
        for name, value in first.settings.items():
            other = curve.settings.get(name)
            if other != value:
                raise UserError(
                    f"{name} is {value} for {first.arch} and {other} for {curve.arch}: their "
                    "perplexities cannot be compared; draw them apart"
                )
    seeds = sorted({curve.seed for curve in curves})
    if len(seeds) > 1:
        return f"seeds {', '.join(map(str, seeds))}: the masks differ from seed to seed"
    return ""


def label(curve: Curve, several_seeds: bool) -> str:
    """``diet_rel, seed 2: 31.5``."""
    parts = [curve.system]
    if curve.segments != "none":
        parts.append(f"{curve.segments} segments")
    if several_seeds:
        parts.append(f"seed {curve.seed}")
    last = f"{curve.last:#.4g}" if math.isfinite(curve.last) else "diverged"
    return f"{', '.join(parts)}: {last}"


def plot(curves: Sequence[Curve], file: Path) -> None:
    """All curves, the best first in the legend, which gives the last perplexity of each."""
    plt = pyplot()
    # A system looks the same whatever stands beside it in the order.
    systems = sorted({curve.system for curve in curves})
    looks = dict(zip(systems, cycle(_looks(plt.get_cmap("tab10").colors)), strict=False))
    several = len({curve.seed for curve in curves}) > 1
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    longest = max(n for curve in curves for n, _ in curve.finite or [(0, 0.0)])
    for curve in sorted(curves, key=lambda curve: curve.last):
        color, line = looks[curve.system]
        for panel, begin in zip(panels, (0, longest / 2), strict=True):
            seen = [(n, ppl) for n, ppl in curve.finite if n >= begin]
            panel.plot(
                *(zip(*seen, strict=True) if seen else ([], [])),
                color=color, linestyle=line, marker=".", markersize=4, linewidth=1.2,
                label=label(curve, several),
            )  # fmt: skip
    for panel in panels:
        panel.set_xlabel("updates")
        panel.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        panel.grid(alpha=0.3)
    panels[0].set_yscale("log")
    for axis in (panels[0].yaxis.set_major_formatter, panels[0].yaxis.set_minor_formatter):
        axis(lambda value, _: f"{value:,.0f}")
    panels[0].set_ylabel("validation perplexity of masked pieces")
    panels[0].set_title("from the start, logarithmic")
    panels[1].set_title("the second half")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right center", title="last perplexity", fontsize=8)
    save(figure, file)


def _looks(colors: Iterable[Any]) -> list[tuple[Any, str]]:
    return [(color, line) for line in ("-", "--", ":") for color in colors]
