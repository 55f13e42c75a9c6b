"""Tables of translation results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path

from ..evaluation.groups import BASELINE, Line, encoding_of
from ..evaluation.options import Option, Options, shell
from ..evaluation.records import Result
from ..evaluation.scores import RESAMPLES
from .blocks import Block, Column, Folded, Heading, Items, legend, number, table
from .published import BLEU, source
from .sections import LEVEL, Section, Standing

HOLM = "p (Holm)"
BRIEF = ("system", "BLEU", "±", "cluster", "length", f"to {BASELINE}", HOLM, "chrF")
EVALUATIONS = "Every evaluation: length, n-gram precisions, updates"
ARCH = "ARCH"  # in commands: any system of the table
FOLDED = f"Commands, {ARCH} for the system"


def _mean(field: str) -> Callable[[Standing], float | None]:
    return lambda standing: standing.line.mean(field) if standing.line else None


def _each(text: Callable[[Result], str]) -> Callable[[Standing], str]:
    """The texts of all seeds that are not empty, each once."""
    return lambda s: ", ".join(
        dict.fromkeys(filter(None, map(text, s.line.results if s.line else ())))
    )


def _gain(value: float | None) -> str | None:
    if not value:
        return None if value is None else "0"
    return number(value, "+.2f")


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
        f"{LEVEL}, uncorrected; systems of one cluster may differ.",
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
    Column("paper", attrgetter("published"), source(BLEU) + ".", ".2f"),
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
    Column("bootstrap", lambda r: number(r[1].bleu_mean, ".2f", r[1].bleu_ci)),
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
    "Seeds: a resample adds to the mean of a system's n seeds a normal deviate of variance v / n. "
    "v is the variance between seeds, pooled over all systems with several, less the part that the "
    "sentences explain; each resample draws it from its chi-square distribution."
)


def board(sections: Sequence[Section]) -> list[Block]:
    """Tables, signatures, commands, and a legend."""
    blocks: list[Block] = []
    for section in sections:
        standings = table(section.standings, STANDING)
        blocks += [Heading(section.group.title), standings, *details(section)]
    return [*blocks, *reading(sections, blocks)]


def brief_board(sections: Sequence[Section]) -> list[Block]:
    """Headings and narrow tables."""
    narrow = [column for column in STANDING if column.title in BRIEF]
    return [
        block
        for section in sections
        for block in (Heading(section.group.title), table(section.standings, narrow))
    ]


def details(section: Section) -> list[Block]:
    """Remarks, signatures, every evaluation, and commands."""
    rows = [(line, result) for line in section.group.lines for result in line.results]
    return [
        Items([*remarks(section), *_signatures(section)]),
        Folded(EVALUATIONS, table(rows, EVALUATION)),
        Folded(FOLDED, commands(section)),
    ]


def reading(sections: Sequence[Section], blocks: Sequence[Block]) -> list[Block]:
    """How to read the tables: the legend of their columns, and of seeds."""
    lines = [*legend(blocks), *([SEEDS] if any(each.has_seeds for each in sections) else [])]
    return [Items(lines)] if lines else []


def remarks(section: Section) -> list[str]:
    """Differences of training within the group, and tests without knowledge of seeds."""
    otherwise: dict[str, list[str]] = {}
    for name, options in section.group.trained_otherwise().items():
        otherwise.setdefault(options, []).append(name)
    lines = [
        f"Training differs from {BASELINE}'s, {options}: {', '.join(names)}."
        for options, names in otherwise.items()
    ]
    mixed = [
        line.name
        for line in section.group.lines
        if len({_general(result.training) for result in line.results}) > 1
    ]
    if mixed:
        lines.append(f"Training commands differ between seeds: {', '.join(mixed)}.")
    if not section.has_seeds:
        lines.append(
            "No system has a second seed: intervals and p-values are over sentences, not seeds."
        )
    return lines


def _signatures(section: Section) -> list[str]:
    results = section.group.results
    return [
        *sorted({f"BLEU {result.bleu_signature}" for result in results}),
        *sorted({f"chrF {result.chrf_signature}" for result in results}),
        *sorted({"{fairseq}, torch {torch}".format(**result.versions) for result in results}),
    ]


def commands(section: Section) -> list[str]:
    """Trainings, then evaluations, with SEED, CHECKPOINTS and ARCH for what differs."""
    results = section.group.results
    train = {_general(result.training, arch=ARCH): None for result in results}
    generate = {_general(result.evaluation): None for result in results}
    return [command for command in [*train, *generate] if command]


def _general(options: Options, **fixed: Option) -> str:
    """The command of any seed, with the options ``fixed`` where it has them."""
    fixed |= {"seed": "SEED", "save-dir": "CHECKPOINTS"}
    fixed["path"] = f"CHECKPOINTS/{Path(str(options.get('path'))).name}"
    if folder := options.get("save-dir"):  # logs next to the checkpoints
        logs = {name: str(value).split(f"{folder}/") for name, value in options.items()}
        fixed |= {name: f"CHECKPOINTS/{end[1]}" for name, end in logs.items() if end[0] == ""}
    return shell({**options, **{name: fixed[name] for name in fixed.keys() & options.keys()}})
