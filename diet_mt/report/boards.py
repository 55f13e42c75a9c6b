"""Tables of translation results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path

from ..evaluation.groups import BASELINE, Line, encoding_of
from ..evaluation.options import Option, Options, shell
from ..evaluation.records import Result
from ..evaluation.scores import RESAMPLES
from .blocks import Block, Column, Folded, Heading, Items, Note, Table, legend, number, table
from .published import BLEU, source
from .sections import LEVEL, Section, Standing

HOLM = "p (Holm)"
BRIEF = ("system", "BLEU", "±", "length", f"to {BASELINE}", HOLM)
EVALUATIONS = "Every evaluation: length, n-gram precisions, updates"
ARCH = "ARCH"  # in commands: any system of the table
FOLDED = f"Commands, {ARCH} for the system"


def _of_line(name: str) -> Callable[[Standing], object]:
    return lambda standing: getattr(standing.line, name) if standing.line else None


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
    Column("BLEU", _of_line("bleu"), "SacreBLEU, mean over the seeds.", ".2f"),
    Column(
        "±",
        attrgetter("half_width"),
        "half of the 95 % bootstrap interval of BLEU, over sentences and seeds; over sentences "
        "alone for rows without sentence counts.",
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
        _of_line("length_ratio"),
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
    Column("chrF", _of_line("chrf"), "SacreBLEU, mean over the seeds.", ".2f"),
    Column(
        "roles",
        _of_line("roles"),
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
    def value(row: Evaluated) -> str:
        return row[1].precisions.split("/")[order - 1] if row[1].precisions else ""

    return Column(f"{order}-grams", value)


EVALUATION: list[Column[Evaluated]] = [
    Column("system", lambda r: r[0].name, number=False),
    Column("seed", lambda r: r[1].seed),
    Column("BLEU", lambda r: r[1].bleu, form=".2f"),
    Column("bootstrap", lambda r: number(r[1].bleu_mean, ".2f", r[1].bleu_ci)),
    Column("length", lambda r: r[1].length_ratio, form=".3f"),
    *map(_precision, range(1, 5)),
    Column("length penalties tried", lambda r: r[1].lenpen_tried, number=False),
    Column("chrF", lambda r: r[1].chrf, form=".2f"),
    Column("updates", lambda r: r[1].updates or None, form=","),  # 0: not recorded
    Column("target tokens seen", lambda r: r[1].train_tokens or None, form=","),
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
        Items([*remarks(section), *_signatures(section)]),
        Folded(EVALUATIONS, table(rows, EVALUATION)),
        Folded(FOLDED, commands(section)),
    ]


def brief_board(sections: Sequence[Section]) -> list[Block]:
    """Headings and narrow tables; partial placements only in the tables of places."""
    blocks: list[Block] = []
    narrow = [column for column in STANDING if column.title in BRIEF]
    for section in sections:
        whole = section.without({n for *_, names in tables_of_places(section) for n in names})
        _, *places = content(section, narrow)
        blocks.append(Heading(section.group.title))
        blocks += [table(whole.standings, narrow)] if whole.standings else []
        blocks += places
    return blocks


def reading(sections: Sequence[Section], blocks: Sequence[Block]) -> list[Block]:
    """How to read the tables: the legend of their columns, and of seeds."""
    lines = legend(blocks)
    if any(section.has_seeds and section.tests for section in sections):
        lines.append(SEEDS)
    if any(
        section.tests is None or line not in section.tests.lines
        for section in sections
        for _, line in section.measured
    ):
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


_ALL = ("encoder", "decoder", "cross")
_PLACES = {
    (): "in nothing else",
    ("decoder",): "in the decoder",
    ("cross",): "in cross-attention",
    ("decoder", "cross"): "in decoder and cross-attention",
}


def tables_of_places(section: Section) -> list[tuple[str, Table, set[str]]]:
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
        places = next((word[3:].split(",") for word in words if word.startswith("in=")), _ALL)
        if options[:1] == ["none"]:
            nowhere.setdefault(frozenset(options[1:]), standing)
        elif not any(option.startswith("input=") for option in options):
            key = line.system.partition(".")[0], line.results[0].arch, " ".join(options)
            encodings.setdefault(key, {}).setdefault(tuple(places), standing)
    parts = {key: {p: s for p, s in cells.items() if p != _ALL} for key, cells in encodings.items()}
    shown = [key for key, own in parts.items() if set().union(*own) == set(_ALL)]
    archs = Counter(arch for _, arch, _ in shown)
    tables = []
    for key in shown:
        name, arch, encoding = key
        without = [each for common, each in nowhere.items() if common <= set(encoding.split())]
        cells = {(): without[0], **encodings[key]} if without else encodings[key]
        rows = [
            [title, *(_bleu(cells.get((*encoder, *others))) for others in _PLACES)]
            for title, encoder in (("not in the encoder", ()), ("in the encoder", ("encoder",)))
        ]
        more = f" ({name}: {encoding})" if archs[arch] > 1 else ""
        names = {standing.name for standing in parts[key].values()}
        table = Table(["", *_PLACES.values()], rows)
        tables.append((f"BLEU by where {arch} acts{more}", table, names))
    return tables


def _bleu(standing: Standing | None) -> str:
    if standing is None or standing.line is None:
        return ""
    return number(standing.line.bleu, ".2f", standing.half_width)
