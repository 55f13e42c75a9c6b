"""Positional logits as heat maps, over the distance, and with segments (Chen et al. 2021, figures
4, 6 and 7).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

import torch
from torch import Tensor

from ..drawing import pyplot
from ..evaluation.json_rows import Row, write_rows
from ..positions import DECODER, KINDS
from .looks import AXES, COLORS, TITLES, heat_maps, keep
from .measures import by_distance
from .observed import Asked, System, fitting, joined, observe

# Figure 6: sentences of 32 tokens, the second segment from position 16 on.
SEGMENT_TOKENS, BORDER = 32, 16
_DIGITS = 4  # significant, of a logit in a row


@dataclass(frozen=True)
class PatternRow(Row):
    """The positional logits of one head.

    ``values``: row i for query i, None where causal attention may not look; empty where the term
    depends on the distance alone. Then ``by_distance`` has its value for each distance i - j from
    ``first_distance`` on. A term that depends on words is the mean over ``sentences``; otherwise
    that is 1.
    """

    system: str
    arch: str
    attention: str
    layers: list[int]  # from 1 on; several where they share one table
    head: int  # from 1 on
    tokens: int
    sentences: int
    segments: bool  # with what segments add, the second one from BORDER on
    first_distance: int
    by_distance: list[float]
    values: list[list[Union[float, None]]]


@dataclass(frozen=True)
class Pattern:
    """The positional logits of layers that have the same: ``logits`` (H, T, S)."""

    kind: str
    layers: list[int]
    logits: Tensor
    sentences: int
    mixes_keys: bool = False

    @property
    def label(self) -> str:
        if len(self.layers) == 1:
            return f"layer {self.layers[0]}"
        return f"layers {self.layers[0]}-{self.layers[-1]}"

    @property
    def shown(self) -> Tensor:
        """The logits, NaN where causal attention may not look."""
        if self.kind != DECODER:
            return self.logits
        behind = torch.ones_like(self.logits, dtype=torch.bool).triu(1)
        return self.logits.masked_fill(behind, torch.nan)

    @property
    def curves(self) -> tuple[range, Tensor] | None:
        """Distances i - j that attention meets, and the value of each, (H, distances); None where
        the logits depend on more than the distance.
        """
        found = None if self.mixes_keys else by_distance(self.logits)
        if found is None:
            return None
        queries, keys = self.logits.shape[-2:]
        first = 0 if self.kind == DECODER else 1 - keys
        return range(first, queries), found[:, first + keys - 1 :]


def patterns(
    system: System, subset: str, tokens: int, count: int, *, segments: bool = False
) -> list[Pattern]:
    """The positional logits of every attention that has some, over ``tokens`` positions.

    ``count``: sentences that those are averaged over which depend on words. ``segments``: with what
    segments add, two segments with the border in the middle.
    """
    given = joined(system, subset, tokens, count)
    if segments:
        border = torch.arange(tokens) >= BORDER
        given["segment_ids"] = border.long().expand_as(given["src_tokens"])
    found: list[Pattern] = []
    for call in observe(system, given):
        logits = call.positional(segments=segments)  # (B, H, T, S)
        if not logits.any() or (segments and call.call.segments is None):
            continue
        same = bool((logits == logits[:1]).all())
        mean = logits[0] if same else logits.mean(0)
        sentences = 1 if same else len(logits)
        one = Pattern(call.kind, [call.layer + 1], mean, sentences, call.mixes_keys)
        last = found[-1] if found and found[-1].kind == one.kind else None
        if last is not None and torch.equal(last.logits, one.logits):
            last.layers.extend(one.layers)
        else:
            found.append(one)
    return found


def pattern_rows(system: System, found: Sequence[Pattern], segments: bool) -> Iterator[PatternRow]:
    for pattern in found:
        curves = pattern.curves
        distances, values = (range(0), None) if curves is None else curves
        for head, matrix in enumerate(pattern.shown):
            yield PatternRow(
                system=system.name,
                arch=system.arch,
                attention=pattern.kind,
                layers=pattern.layers,
                head=head + 1,
                tokens=matrix.size(0),
                sentences=pattern.sentences,
                segments=segments,
                first_distance=distances.start,
                by_distance=[] if values is None else [_short(v) for v in values[head].tolist()],
                values=[] if values is not None else [
                    [None if v != v else _short(v) for v in row] for row in matrix.tolist()
                ],
            )  # fmt: skip


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def draw(systems: Sequence[System], asked: Asked, out: Path) -> list[str]:
    """Writes ``patterns.jsonl``, a picture ``patterns.SYSTEM.ATTENTION`` of heat maps for each
    kind of attention with a positional term, and ``distance.SYSTEM`` of what depends on the
    distance alone. Returns the systems without a term.
    """
    tokens = fitting(systems[0], asked.positions, "patterns")
    shown = {
        system.name: (system, patterns(system, asked.subset, tokens, asked.sentences))
        for system in systems
    }
    rows = [row for each in shown.values() for row in pattern_rows(*each, False)]
    numbers = out / "patterns.jsonl"
    if rows:
        write_rows(numbers, rows)
    for system, found in shown.values():
        for kind in dict.fromkeys(pattern.kind for pattern in found):
            own = [pattern for pattern in found if pattern.kind == kind]
            title = f"{system.name}: positional logits of {TITLES[kind]}"
            if (sentences := max(pattern.sentences for pattern in own)) > 1:
                title += f", mean over {sentences} sentences"
            keep(_maps(own, title), numbers, f"patterns.{system.name}.{kind}")
        if any(pattern.curves is not None for pattern in found):
            keep(_curves(system, found), numbers, f"distance.{system.name}")
    return [name for name, (_, found) in shown.items() if not found]


def draw_segments(systems: Sequence[System], asked: Asked, out: Path) -> list[str]:
    """Writes ``segments.jsonl``, and ``segments.SYSTEM`` for each system with segments in its
    logits. Returns the systems without.
    """
    tokens = fitting(systems[0], SEGMENT_TOKENS, "segments")
    shown = {
        system.name: (
            system,
            patterns(system, asked.subset, tokens, asked.sentences, segments=True),
        )
        for system in systems
        if not system.translates
    }
    rows = [row for each in shown.values() for row in pattern_rows(*each, True)]
    if rows:
        write_rows(numbers := out / "segments.jsonl", rows)
    for name, (_, found) in shown.items():
        if found:
            title = f"{name}: positions and segments, the second one from {BORDER} on"
            keep(_maps(found, title, border=BORDER), numbers, f"segments.{name}")
    return [each.name for each in systems if not shown.get(each.name, (each, []))[1]]


def _maps(found: Sequence[Pattern], title: str, border: int | None = None) -> Any:
    maps = {pattern.label: list(pattern.shown) for pattern in found}
    x, y = AXES[found[0].kind]
    return heat_maps(maps, title, ("mixed key" if found[0].mixes_keys else x, y), border=border)


def _curves(system: System, found: Sequence[Pattern]) -> Any:
    """A panel for each layer and kind of attention, a line for each head; distances that training
    had not are beyond dotted lines.
    """
    plt = pyplot()
    shown = [pattern for pattern in found if pattern.curves is not None]
    kinds = [kind for kind in KINDS if any(pattern.kind == kind for pattern in shown)]
    columns = {kind: [pattern for pattern in shown if pattern.kind == kind] for kind in kinds}
    rows = max(map(len, columns.values()))
    figure, panels = plt.subplots(
        rows, len(kinds), figsize=(2.8 * len(kinds) + 1.5, 1.5 * rows + 0.9), squeeze=False,
        sharey=True, sharex="col", layout="constrained",
    )  # fmt: skip
    figure.suptitle(f"{system.name}: positional logits over the distance", fontsize=11)
    for line, own in zip(panels.T, columns.values(), strict=True):
        for cell in line[len(own) :]:
            cell.axis("off")
        for cell, pattern in zip(line, own, strict=False):
            _curve(cell, pattern, system.trained.get(pattern.kind))
    heads = {line.get_label(): line for cell in panels.flat for line in cell.get_lines()}
    handles = {label: line for label, line in heads.items() if str(label).startswith("head")}
    figure.legend(
        list(handles.values()), list(handles), loc="outside right center", fontsize=8, frameon=False
    )
    said = "distance i - j of query and key, in tokens"
    dotted = [
        line for cell in panels.flat for line in cell.get_lines() if line.get_linestyle() == ":"
    ]
    figure.supxlabel(f"{said}; dotted: the largest of training" if dotted else said, fontsize=9)
    figure.supylabel("added to the logit", fontsize=9)
    return figure


def _curve(panel: Any, pattern: Pattern, trained: tuple[int, int] | None) -> None:
    """``trained``: tokens of queries and keys in the longest sentences of training; None: not
    known.
    """
    assert pattern.curves is not None
    distances, values = pattern.curves
    for head, (color, own) in enumerate(zip(_colors(len(values)), values, strict=True), start=1):
        panel.plot(distances, own.numpy(), color=color, linewidth=1.1, label=f"head {head}")
    panel.axhline(0, color="0.6", linewidth=0.7)
    panel.axvline(0, color="0.6", linewidth=0.7)
    queries, keys = trained or pattern.logits.shape[-2:]
    for furthest in (queries - 1, 1 - keys):
        if furthest in distances[1:-1]:
            panel.axvline(furthest, color="0.3", linewidth=0.8, linestyle=":")
    panel.set_title(f"{TITLES[pattern.kind]}, {pattern.label}", fontsize=8, pad=3)
    panel.tick_params(labelsize=7)
    panel.margins(x=0.01)


def _colors(count: int) -> Sequence[Any]:
    """As many as there are heads."""
    if count <= len(COLORS):
        return COLORS[:count]
    colors: Sequence[Any] = pyplot().get_cmap("viridis")(torch.linspace(0, 0.95, count).numpy())
    return colors
