"""Tables of translation results, as blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..evaluation.groups import BASELINE, Line, encoding_of
from ..evaluation.options import Option, Options, shell
from ..evaluation.records import Result
from ..evaluation.scores import RESAMPLES
from .blocks import (
    Block,
    Column,
    Commands,
    Folded,
    Grid,
    Heading,
    Items,
    Note,
    legend,
    number,
    table,
)
from .published import BLEU, source
from .sections import LEVEL, Section, Standing

HOLM = "p (Holm)"
BRIEF = ("system", "BLEU", "±", "length", f"to {BASELINE}", HOLM)
EVALUATIONS = "Every evaluation: length, n-gram precisions, updates"
ARCH = "ARCH"  # in commands: any system of the table
FOLDED = f"Commands, {ARCH} for the system"


def _line(form: str, name: str, standing: Standing) -> str:
    value = getattr(standing.line, name) if standing.line else None
    return "" if value is None else format(value, form)


def _gain(value: float | None) -> str:
    return "" if value is None else number(value, "+.2f") if value else "0"


def _seeds(standing: Standing) -> str:
    results = standing.line.results if standing.line else ()
    return ", ".join(f"{each.seed}: {each.bleu:.2f}" for each in results)


def _penalties(standing: Standing) -> str:
    results = standing.line.results if standing.line else ()
    return ", ".join(f"{each.seed}: {each.lenpen:g}" for each in results if each.lenpen_tried)


def _parameters(standing: Standing) -> str:
    results = standing.line.results if standing.line else ()
    return ", ".join(f"{count:,}" for count in sorted({each.parameters for each in results}))


STANDING: list[Column[Standing]] = [
    Column("system", lambda s: s.name, number=False),
    Column("BLEU", partial(_line, ".2f", "bleu"), "SacreBLEU, mean over the seeds."),
    Column(
        "±",
        lambda s: "" if s.half_width is None else f"{s.half_width:.2f}",
        "half of the 95 % bootstrap interval of BLEU, over sentences and seeds; over sentences "
        "alone for rows without sentence counts.",
    ),
    Column(
        "cluster",
        lambda s: str(s.cluster or ""),
        "a new one begins where every system above is better than every system below with p ≤ "
        f"{LEVEL}, uncorrected; systems of one cluster may differ.",
    ),
    Column(
        "length",
        partial(_line, ".3f", "length_ratio"),
        "tokens of the translations over those of the references, mean over the seeds. Below 1, "
        "BLEU is multiplied by exp(1 - 1 / length).",
    ),
    Column(
        f"to {BASELINE}",
        lambda s: _gain(s.gain),
        f"difference of mean BLEU to {BASELINE}, before rounding.",
    ),
    Column(
        HOLM,
        lambda s: s.p_text,
        f"two-sided paired bootstrap test of that difference, {RESAMPLES:,} resamples, corrected "
        "for the number of systems in the group, shown or not (Holm 1979). ≤: the smallest value "
        "that the resamples allow.",
    ),
    Column("paper", lambda s: f"{s.published.bleu:.2f}" if s.published else "", source(BLEU) + "."),
    Column(f"paper, to {BASELINE}", lambda s: _gain(s.published.gain if s.published else None)),
    Column("chrF", partial(_line, ".2f", "chrf"), "SacreBLEU, mean over the seeds."),
    Column(
        "roles",
        partial(_line, ".1f", "roles"),
        "of sentences whose subject and object could change places, the percentage of translations "
        "closer to the reference than to that of the swapped sentence; chance is 50.",
    ),
    Column("BLEU of each seed", _seeds, number=False),
    Column("length penalty", _penalties, "chosen on the validation set, per seed.", number=False),
    Column("parameters", _parameters),
]


def _precision(order: int, row: tuple[Line, Result]) -> str:
    result = row[1]
    return result.precisions.split("/")[order - 1] if result.precisions else ""


def _ratio(result: Result) -> str:
    return "" if result.length_ratio is None else f"{result.length_ratio:.3f}"


def _count(value: int) -> str:
    return f"{value:,}" if value else ""  # 0: not recorded


EVALUATION: list[Column[tuple[Line, Result]]] = [
    Column("system", lambda r: r[0].name, number=False),
    Column("seed", lambda r: str(r[1].seed)),
    Column("BLEU", lambda r: f"{r[1].bleu:.2f}"),
    Column("bootstrap", lambda r: number(r[1].bleu_mean, ".2f", r[1].bleu_ci)),
    Column("length", lambda r: _ratio(r[1])),
    *(Column(f"{n}-grams", partial(_precision, n)) for n in range(1, 5)),
    Column("length penalties tried", lambda r: r[1].lenpen_tried, number=False),
    Column("chrF", lambda r: f"{r[1].chrf:.2f}"),
    Column("updates", lambda r: _count(r[1].updates)),
    Column("target tokens seen", lambda r: _count(r[1].train_tokens)),
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
UNCOUNTED = (
    "Rows without sentence counts have no p-value; `diet-mt compare RESULTS.jsonl --references "
    "FILE` adds the counts."
)


def board(sections: Sequence[Section]) -> list[Block]:
    """Tables, signatures, commands, and a legend."""
    blocks = [
        block
        for section in sections
        for block in (Heading(section.group.title), *content(section), *details(section))
    ]
    return [*blocks, *reading(sections, blocks)]


def content(section: Section, columns: Sequence[Column[Standing]] = STANDING) -> list[Block]:
    """The tables of one section."""
    blocks: list[Block] = [table(section.standings, columns)]
    for caption, grid, _ in tables_of_places(section):
        blocks += [Note(f"{caption}:"), grid]
    return blocks


def details(section: Section) -> list[Block]:
    """Remarks, signatures, every evaluation, and commands."""
    rows = [(line, result) for line in section.group.lines for result in line.results]
    return [
        Items([*remarks(section), *signatures(section)]),
        Folded(EVALUATIONS, table(rows, EVALUATION)),
        Commands(FOLDED, commands(section)),
    ]


def brief_board(sections: Sequence[Section]) -> list[Block]:
    """Headings and narrow tables; partial placements only in the tables of places."""
    blocks: list[Block] = []
    narrow = [column for column in STANDING if column.title in BRIEF]
    for section in sections:
        places = tables_of_places(section)
        whole = section.without({name for *_, names in places for name in names})
        blocks.append(Heading(section.group.title))
        if whole.standings:
            blocks.append(table(whole.standings, narrow))
        for caption, grid, _ in places:
            blocks += [Note(f"{caption}:"), grid]
    return blocks


def reading(sections: Sequence[Section], blocks: Sequence[Block]) -> list[Block]:
    """How to read the tables: the legend of their columns, and of seeds."""
    lines = legend(blocks)
    if any(section.has_seeds and section.tests for section in sections):
        lines.append(SEEDS)
    if any(not section.is_tested(line) for section in sections for _, line in section.measured):
        lines.append(UNCOUNTED)
    return [Items(lines)] if lines else []


def remarks(section: Section) -> list[str]:
    """Differences of training within the group, and tests without knowledge of seeds."""
    otherwise: dict[str, list[str]] = {}
    for name, options in section.group.trained_otherwise.items():
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
    if not section.has_seeds and section.tests:
        lines.append(
            "No system has a second seed: intervals and p-values are over sentences, not seeds."
        )
    return lines


def signatures(section: Section) -> list[str]:
    """SacreBLEU's signatures, and versions."""
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


_ALL = ("encoder", "decoder", "cross")
_PLACES = {
    (): "in nothing else",
    ("decoder",): "in the decoder",
    ("cross",): "in cross-attention",
    ("decoder", "cross"): "in decoder and cross-attention",
}


def tables_of_places(section: Section) -> list[tuple[str, Grid, set[str]]]:
    """BLEU by the attention that an encoding acts in: caption, table, systems of partial placement.

    A table for each encoding trained in parts of its attention that cover all kinds; acting nowhere
    is the system without positions. Names alike up to the first dot are one encoding; the shorter
    name wins a cell. Models with positions at the input as well are left out.
    """
    encodings: dict[tuple[str, str, str], dict[tuple[str, ...], Standing]] = {}
    nowhere: dict[frozenset[str], Standing] = {}
    for standing, line in sorted(section.measured, key=lambda pair: len(pair[1].system)):
        words = encoding_of(line.results[0]).split()
        options = [word for word in words if not word.startswith("in=")]
        places = next(
            (tuple(word[3:].split(",")) for word in words if word.startswith("in=")), _ALL
        )
        if options[:1] == ["none"]:
            nowhere.setdefault(frozenset(options[1:]), standing)
        elif not any(option.startswith("input=") for option in options):
            key = line.system.partition(".")[0], line.results[0].arch, " ".join(options)
            encodings.setdefault(key, {}).setdefault(places, standing)
    shown = {
        key: cells
        for key, cells in encodings.items()
        if {place for places in cells if places != _ALL for place in places} == set(_ALL)
    }
    archs = Counter(arch for _, arch, _ in shown)
    tables = []
    for (name, arch, encoding), cells in shown.items():
        parts = {each.name for places, each in cells.items() if places != _ALL}
        for common, each in nowhere.items():
            if common <= set(encoding.split()):
                cells.setdefault((), each)
        more = f" ({name}: {encoding})" if archs[arch] > 1 else ""
        rows = [
            [title, *(_cell(cells.get((*encoder, *others))) for others in _PLACES)]
            for title, encoder in (("not in the encoder", ()), ("in the encoder", ("encoder",)))
        ]
        grid = Grid(["", *_PLACES.values()], rows)
        tables.append((f"BLEU by where {arch} acts{more}", grid, parts))
    return tables


def _cell(standing: Standing | None) -> str:
    if standing is None or standing.line is None:
        return ""
    return number(standing.line.bleu, ".2f", standing.half_width)
