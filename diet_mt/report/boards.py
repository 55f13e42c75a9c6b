"""Tables of translation results, and a picture of their intervals."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any

from ..evaluation.groups import BASELINE, Line, encoding_of
from ..evaluation.options import Option, Options, shell
from ..evaluation.records import Result
from ..evaluation.scores import RESAMPLES
from .blocks import Block, Column, Folded, Heading, Items, Note, legend, number, table
from .published import source
from .sections import LEVEL, Section, Standing
from .style import FAMILIES, pyplot

HOLM = "p (Holm)"
BRIEF = ("system", "BLEU", "±", "cluster", "length", f"to {BASELINE}", HOLM, "chrF")
EVALUATIONS = "Every evaluation: length, n-gram precisions, updates"
FOLDED = "Commands, ARCH for the system"


def _mean(field: str) -> Callable[[Standing], float | None]:
    return lambda standing: standing.line.mean(field) if standing.line else None


def _each(text: Callable[[Result], str]) -> Callable[[Standing], str]:
    """The distinct nonempty texts of all seeds."""
    return lambda s: ", ".join(
        dict.fromkeys(filter(None, map(text, s.line.results if s.line else ())))
    )


def _gain(value: float | None) -> str | None:
    if value is None:
        return None
    return number(value, "+.2f") if value else "0"


STANDING: list[Column[Standing]] = [
    Column("system", attrgetter("name"), number=False),
    Column("BLEU", _mean("bleu"), "SacreBLEU, mean over the seeds.", ".2f"),
    Column(
        "±",
        attrgetter("half_width"),
        "half of the 95 % bootstrap interval of BLEU, over sentences and seeds.",
        ".2f",
    ),
    Column(
        "cluster",
        attrgetter("cluster"),
        "a new one begins where every system above is better than every system below with p ≤ "
        f"{LEVEL}, Holm-corrected for all pairs of systems, displayed or not; systems of one "
        "cluster may differ.",
    ),
    Column(
        "length",
        _mean("length_ratio"),
        "tokens of the translations over those of the references, mean over the seeds. Below 1, "
        "BLEU is multiplied by exp(1 - 1 / length).",
        ".3f",
    ),
    Column(
        f"to {BASELINE}",
        lambda s: _gain(s.gain),
        f"difference of mean BLEU to {BASELINE}, before rounding.",
    ),
    Column(
        HOLM,
        attrgetter("p_text"),
        f"two-sided paired bootstrap test of that difference, {RESAMPLES:,} resamples, corrected "
        "for the number of systems in the group, shown or not (Holm 1979). ≤: the smallest value "
        "that the resamples allow.",
    ),
    Column("paper", attrgetter("published"), source("bleu") + ".", ".2f"),
    Column(f"paper, to {BASELINE}", lambda s: _gain(s.published_gain)),
    Column("chrF", _mean("chrf"), "SacreBLEU, mean over the seeds.", ".2f"),
    Column(
        "roles",
        _mean("roles"),
        "of sentences whose subject and object could change places, the percentage of translations "
        "closer to the reference than to that of the swapped sentence; chance is 50.",
        ".1f",
    ),
    Column("BLEU of each seed", _each(lambda r: f"{r.seed}: {r.bleu:.2f}"), number=False),
    Column(
        "length penalty",
        _each(lambda r: f"{r.seed}: {r.lenpen:g}" if r.lenpen_tried else ""),
        "chosen on the validation set, per seed.",
        number=False,
    ),
    Column("parameters", lambda s: s.line and s.line.results[0].parameters, form=","),
]

Evaluated = tuple[Line, Result]


def _precision(order: int) -> Column[Evaluated]:
    return Column(f"{order}-grams", lambda r: r[1].precisions.split("/")[order - 1])


EVALUATION: list[Column[Evaluated]] = [
    Column("system", lambda r: r[0].name, number=False),
    Column("seed", lambda r: r[1].seed),
    Column("BLEU", lambda r: r[1].bleu, form=".2f"),
    Column("length", lambda r: r[1].length_ratio, form=".3f"),
    *map(_precision, range(1, 5)),
    Column("length penalties tried", lambda r: r[1].lenpen_tried, number=False),
    Column("chrF", lambda r: r[1].chrf, form=".2f"),
    Column("updates", lambda r: r[1].updates, form=","),
    Column("target tokens seen", lambda r: r[1].train_tokens or None, form=","),  # 0: unknown
    Column("positions", lambda r: encoding_of(r[1]), number=False),
    Column("checkpoint", lambda r: r[1].checkpoint_sha256[:8], number=False),
    Column("trained at", lambda r: r[1].train_revision, number=False),
    Column("evaluated at", lambda r: r[1].revision, number=False),
    Column("on", lambda r: r[1].date, number=False),
]

SEEDS = (
    "Detectable: a true difference that is significant (uncorrected) with a probability of 80 %, "
    "on the median of the systems.",
    "Seeds: a resample adds to the mean of a system's n seeds a normal deviate of variance v / n, "
    "the same for decodings of the same trainings. v is the variance between seeds, pooled over "
    "all systems with several, less the part that the sentences explain; each resample draws it "
    "from its chi-square distribution.",
)


def board(sections: Sequence[Section], *, brief: bool = False) -> list[Block]:
    """Tables, signatures, commands and a legend; ``brief``: only narrow tables."""
    blocks: list[Block] = []
    for section in sections:
        columns = [each for each in STANDING if each.title in BRIEF or not brief]
        blocks.append(Heading(section.group.title))
        if least := section.detectable:
            blocks.append(Note(f"Detectable difference to {BASELINE}: {least:.1f} BLEU."))
        blocks.append(table(section.standings, columns))
        blocks += [] if brief else details(section)
    return blocks if brief else [*blocks, *reading(sections, blocks)]


def details(section: Section) -> list[Block]:
    """Remarks, signatures, every evaluation, and commands."""
    rows = [(line, result) for line in section.group.lines for result in line.results]
    forms = ["BLEU {0.bleu_signature}", "chrF {0.chrf_signature}"]
    forms += ["{0.versions[fairseq]}, torch {0.versions[torch]}"]
    signatures = [sorted({form.format(result) for _, result in rows}) for form in forms]
    return [
        Items([*remarks(section), *chain(*signatures)]),
        Folded(EVALUATIONS, table(rows, EVALUATION)),
        Folded(FOLDED, commands(section)),
    ]


def reading(sections: Sequence[Section], blocks: Sequence[Block]) -> list[Block]:
    """The legend of the tables: of their columns, and of the variance between seeds."""
    lines = [*legend(blocks), *(SEEDS if any(each.has_seeds for each in sections) else ())]
    return [Items(lines)] if lines else []


def remarks(section: Section) -> list[str]:
    """Remarks on differences of training in the group, and on tests without several seeds."""
    otherwise: dict[str, list[str]] = {}
    for name, options in section.group.trained_otherwise().items():
        otherwise.setdefault(options, []).append(name)
    lines = [
        f"Training differs from {BASELINE}'s, {options}: {', '.join(names)}."
        for options, names in otherwise.items()
    ]
    trainings = {
        line.name: {_general(result.training) for result in line.results}
        for line in section.group.lines
    }
    if mixed := [name for name, each in trainings.items() if len(each) > 1]:
        lines.append(f"Training commands differ between seeds: {', '.join(mixed)}.")
    if not section.has_seeds:
        lines.append(
            "No system has a second seed: intervals and p-values are over sentences, not seeds."
        )
    return lines


def commands(section: Section) -> list[str]:
    """Training commands, then evaluation commands, with SEED, CHECKPOINTS and ARCH as variables."""
    results = section.group.results
    train = {_general(result.training, arch="ARCH"): None for result in results}
    generate = {_general(result.evaluation): None for result in results}
    return [command for command in [*train, *generate] if command]


def _general(options: Options, **fixed: Option) -> str:
    """A command with variables for options that it has: SEED, CHECKPOINTS, and ``fixed``."""
    folder = options.get("save-dir") or Path(str(options.get("path"))).parent
    fixed |= {"seed": "SEED", "save-dir": "CHECKPOINTS"}
    words = shell({**options, **{name: fixed[name] for name in fixed.keys() & options.keys()}})
    # Checkpoints, and the data and logs next to them.
    return re.sub(rf"(?<![^\s'=]){re.escape(str(folder))}/", "CHECKPOINTS/", words)


def intervals(section: Section) -> Any:
    """A picture of BLEU of all systems, with intervals."""
    standings, baseline = section.standings, section.group.baseline
    size = (7, 1.0 + 0.2 * len(standings))
    figure, axes = pyplot().subplots(figsize=size, layout="constrained")
    axes.grid(alpha=0.3)
    axes.tick_params(labelsize=8)
    for y, each in enumerate(standings):
        _, color = FAMILIES[each.family]
        if each.line:
            how = {"fmt": "o", "color": color, "markersize": 5, "capsize": 2.5, "linewidth": 1}
            bar = axes.errorbar(each.line.bleu, y, xerr=each.half_width, **how)
            bar.lines[0].set_gid(f"t:{each.name}: {each.line.bleu:.2f} ± {each.half_width:.2f}")
            seeds = [result.bleu for result in each.line.results]
            if len(seeds) > 1:
                seed = {"s": 9, "facecolor": "none", "edgecolor": color, "zorder": 3}
                axes.scatter(seeds, [y] * len(seeds), **seed)
            place = {"xy": (1.01, y), "xycoords": ("axes fraction", "data"), "va": "center"}
            axes.annotate(f"{each.line.bleu:.2f}", **place, fontsize=8)
        if each.published:
            axes.scatter(each.published, y, marker="D", facecolor="none", edgecolor="black")
    for y, (above, below) in enumerate(pairwise(standings)):
        if below.cluster and above.cluster != below.cluster:
            axes.axhline(y + 0.5, color="0.5", linewidth=0.8)
    if baseline and baseline in section.group.lines:
        axes.axvline(baseline.bleu, color="0.5", linewidth=0.8, linestyle="--")
    names = [each.name.partition(" (")[0] for each in standings]  # without architectures
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(len(standings) - 0.5, -0.5)
    axes.set_xlabel("BLEU and its 95 % interval; rings: seeds; diamonds: the paper", fontsize=8)
    shown = {each.family for each in standings}
    point = {"marker": "o", "linestyle": "", "markersize": 5}
    patches = [
        pyplot().Line2D([], [], **point, color=color, label=text)
        for name, (text, color) in FAMILIES.items()
        if name in shown
    ]
    axes.legend(handles=patches, fontsize=7, loc="best", frameon=False)
    return figure
