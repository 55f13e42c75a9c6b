"""The claims of Chen et al. 2021 (``claims.yaml``), decided by rows of results.

A difference decides a claim if its 95 % interval excludes 0 or, with p-values, if it is significant
after Holm's correction for the data sets that it is tested on. The interval of a normal estimate
with standard deviation s is ± 1.96 s, so it excludes 0 with a probability of 80 % if the true
difference is (1.96 + 0.84) s = 2.80 s, 1.43 times half of the interval. With n seeds of each
system, s^2 is u + 2 v / n, u of the sentences, v between seeds, and both factors are Student's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import yaml
from scipy.stats import t as student

from ..evaluation.json_rows import read_dicts
from ..evaluation.records import TaskResult, read_task_results
from ..evaluation.scores import RESAMPLES, SEED, Floats, half_width, holm
from .blocks import Block, Column, Items, Table, legend, number, table
from .published import COSTS, GLUE, XTREME, bleu_of
from .sections import DETECTABLE, LEVEL, Section, quantile, read_sections
from .style import color_of, pyplot
from .tasks import GLUE_COLUMNS, XTREME_COLUMNS, Cell, Entrant, entrants, languages_of, score

CONFIRMED, CONTRADICTED, UNDECIDED = "confirmed", "contradicted", "not decidable here"
TARGET = 0.5  # BLEU, if the paper has no such difference
MANY = 100  # seeds
# Half of the 95 % interval of a median, over the interquartile range; for n values, over sqrt(n).
_MEDIAN = quantile(0.975) * math.sqrt(math.pi / 2) / (2 * quantile(0.75))
# Systems of figure 1: positions at the input, in translation and in encoders; and others.
INPUT = ("sinusoidal", "learned input")
SUMMARY = {"diet_abs": "absolute (DIET-ABS)", "diet_rel": "relative (DIET-REL)"}
Content = Mapping[str, Any]


@dataclass(frozen=True)
class Evidence:
    """The difference of a pair of systems, the first minus the second, on one data set."""

    claim: str
    pair: tuple[str, str] = ("", "")
    data: str = "no rows"
    value: float | None = None  # None: no rows
    half: float | None = None  # of the 95 % interval
    known: bool = True  # the interval covers the variance between trainings
    paper: float | None = None
    p: float | None = None  # corrected; None: the interval decides
    sign: float = 1  # of the claim's difference
    margin: float | None = None  # the claim is that the difference is at most this
    seeds: str = ""
    sizes: Mapping[str, float] = field(default_factory=dict)  # unit -> size of the data
    needs: str = ""  # requirement to decide the claim, if ``sizes`` are no estimate
    form: str = "+.2f"
    unit: str = ""

    @property
    def verdict(self) -> str:
        if self.value is None or self.half is None or not self.known:
            return UNDECIDED
        low, high = self.value - self.half, self.value + self.half
        if self.margin is not None:
            inside, outside = high <= self.margin, low > self.margin
            return CONFIRMED if inside else CONTRADICTED if outside else UNDECIDED
        if not (low > 0 or high < 0 if self.p is None else self.p <= LEVEL):
            return UNDECIDED
        return CONFIRMED if self.value * self.sign > 0 else CONTRADICTED

    @property
    def detectable(self) -> float | None:
        """Smallest true difference that is significant with a probability of 80 %."""
        return DETECTABLE * self.half if self.half and self.known else None

    @property
    def takes(self) -> str:
        """Size of the data with which the paper's difference would be detectable."""
        if self.verdict != UNDECIDED:
            return ""
        if self.needs or not self.half:
            return self.needs
        gap = abs(self.paper or TARGET)
        if self.margin is not None:  # assuming the same difference
            gap = abs(self.margin - (self.value or 0)) or self.margin
        if (more := (DETECTABLE * self.half / gap) ** 2) <= 1:
            return "a difference as large as the paper's would show"
        first = next(iter(self.sizes.values()))
        more = math.ceil(more * first) / first  # a whole number of the first
        return ", ".join(f"{math.ceil(more * n):,} {unit}" for unit, n in self.sizes.items())

    @property
    def brief(self) -> str:
        """Data and our difference."""
        ours = self.text(self.value, half=self.half or None)
        one = "" if self.known else " (one training)"
        return f"{self.data}: {ours}{one}" if ours else self.data

    def text(self, value: float | None, form: str = "", half: float | None = None) -> str | None:
        """A value with its unit, or None."""
        return None if value is None else number(value, form or self.form, half) + self.unit


def read_claims() -> Content:
    """The content of ``claims.yaml``."""
    text = Path(__file__).with_name("claims.yaml").read_text(encoding="utf-8")
    content: Content = yaml.safe_load(text)
    return content


def evidence(folder: Path, content: Content) -> list[Evidence]:
    """Evidence for each claim on each data set with rows in ``folder``, a folder of results."""
    files = {file for data in content["data"].values() for file in data["files"]}
    files = {file for file in files if (folder / file).exists()}
    sections = {file: read_sections([folder / file])[0] for file in files}
    tasks = [
        row for file in sorted(folder.glob("tasks/*.jsonl")) for row in read_task_results(file)
    ]
    every: list[Evidence] = []
    for claim in content["claims"]:
        own = [*_corrected(_bleu(claim, content["data"], sections)), *_tasks(claim, tasks)]
        own += [*_costs(claim, folder), *_ranks(claim, folder)]
        every += own or [Evidence(claim["claim"])]
    return every


def _corrected(every: Iterator[Evidence]) -> Iterator[Evidence]:
    """With p-values corrected for the data sets on which a difference is tested."""
    for _, of_pair in groupby(every, lambda each: each.pair):
        data = list(of_pair)
        corrected = iter(holm([each.p for each in data if each.p is not None]))
        for each in data:
            yield each if each.p is None else replace(each, p=next(corrected))


def _bleu(
    claim: Content, every: Content, sections: Mapping[str, Sequence[Section]]
) -> Iterator[Evidence]:
    for (one, other), name in product(claim.get("bleu", ()), claim.get("data", ())):
        data = every[name]
        for section in (each for file in data["files"] for each in sections.get(file, ())):
            conditions = section.group.conditions
            lines = {line.system: line for line in section.group.lines}
            tests = data.get("test_sets", [conditions.test_set])
            if conditions.test_set not in tests or not {one, other} <= lines.keys():
                continue
            of_set = f" ({conditions.test_set})" if len(tests) > 1 else ""
            value, half, p = section.tests.difference(lines[one], lines[other])
            bleu = bleu_of(conditions.direction)
            first, second = (bleu.get(system.removesuffix(".published")) for system in (one, other))
            paper = None if first is None or second is None else round(first - second, 2)
            needs, gap = "a second seed", abs(paper or TARGET)
            if section.has_seeds:
                u = section.tests.over_sentences(lines[one], lines[other])
                size = required(gap, u, section.tests.between[0])
                shows = DETECTABLE * half <= gap  # such a difference, with the data at hand
                needs = "" if shows else _needs(*size, conditions.sentences, data)
            yield Evidence(
                claim["claim"],
                (one, other),
                f"{name}{of_set}, {conditions.direction}",
                value,
                half,
                known=section.has_seeds,
                paper=paper,
                p=p if section.has_seeds else None,
                sign=paper or 1,
                seeds=" and ".join(str(len(lines[system].results)) for system in (one, other)),
                needs=needs,
            )


def _needs(seeds: int, more: float, sentences: int, data: Content) -> str:
    hours = f"{math.ceil(2 * seeds * data['hours']):,} {data.get('on', 'core')} hours"
    enough = f"{seeds} seeds, {math.ceil(more * sentences):,} sentences, {hours}"
    return enough if seeds else f"over {MANY} seeds"


def required(gap: float, over_sentences: float, between: float) -> tuple[int, float]:
    """Seeds of each of two systems, 0 for more than MANY, and a multiple of the sentences, with
    which a difference ``gap`` is detectable; ``over_sentences``, ``between``: variances u and v.

    There are more sentences only if 0.9 of the allowed variance is theirs; then it is half of it.
    """
    allowed = (gap / (quantile(0.975) + quantile(0.8))) ** 2
    more = 1.0 if over_sentences <= 0.9 * allowed else 2 * over_sentences / allowed
    seeds = np.arange(2, MANY + 1)
    factor = student.ppf(0.975, 2 * seeds - 2) + student.ppf(0.8, 2 * seeds - 2)
    enough = seeds[factor**2 * (over_sentences / more + 2 * between / seeds) <= gap**2]
    return int(enough[0]) if len(enough) else 0, more


def _tasks(claim: Content, rows: Sequence[TaskResult]) -> Iterator[Evidence]:
    """Differences of means over the paper's tasks that both systems have, at equal updates of
    pretraining: over pretrained models where a system has several, otherwise over the seeds of
    fine-tuning of tasks with several seeds, if any, which does not decide a claim.
    """
    kinds = ((GLUE, GLUE_COLUMNS), (XTREME, XTREME_COLUMNS))
    models: dict[int, dict[str, list[Entrant]]] = {}
    for updates in sorted({row.pretrain_updates for row in rows}):
        for each in entrants(row for row in rows if row.pretrain_updates == updates):
            name = f"{each.results[0].system} {each.segments}"
            models.setdefault(updates, {}).setdefault(name, []).append(each)
    for pair, (kind, columns), updates in product(claim.get("tasks", ()), kinds, models):
        sides = [models[updates].get(name, []) for name in pair]
        repeated = max(map(len, sides)) > 1
        values = {}
        for column in columns:
            languages = languages_of(column, rows)
            cells = [
                [c for each in side if (c := score(column, each, languages))] for side in sides
            ]
            if all(cells) and cells[0] != cells[1]:  # not the same rows, without segments
                values[column.title] = [_values(side, models=repeated) for side in cells]
        enough = max if repeated else min  # of the sides; models share their variance
        several = {k: v for k, v in values.items() if enough(map(len, v)) > 1}
        if not (used := several or values):
            continue
        differences = [_difference(both, n) for n, both in enumerate(used.values())]
        papers = [side[0].published[kind].scores for side in sides if kind in side[0].published]
        counts = [sorted({len(both[side]) for both in used.values()}) for side in (0, 1)]
        yield Evidence(
            claim["claim"],
            (pair[0], pair[1]),
            f"{kind.upper()}: {', '.join(used)}; {updates:,} updates",
            fmean(value for value, _ in differences),
            half_width(np.mean([samples for _, samples in differences], 0)) if several else None,
            known=repeated,
            paper=fmean(papers[0][k] - papers[1][k] for k in used) if len(papers) == 2 else None,
            seeds=" and ".join("/".join(map(str, each)) for each in counts),
            sizes={"pretrained models": 2 / sum(1 / each[0] for each in counts)},
            needs="" if repeated else "several pretrained models of each",
        )


def _values(cells: Sequence[Cell], *, models: bool) -> Floats:
    """Scores of each pretrained model, or of each seed of the only one."""
    seeds = [list(cell.by_seed.values()) for cell in cells]
    return np.array([fmean(each) for each in seeds] if models else seeds[0])


def _difference(sides: Sequence[Floats], stream: int) -> tuple[float, Floats]:
    """Difference of the means, and random draws of its error, for equal variances (Student)."""
    freedom = max(1, sum(len(side) - 1 for side in sides))
    variance = sum(float(((side - side.mean()) ** 2).sum()) for side in sides) / freedom
    scale = math.sqrt(variance * sum(1 / len(side) for side in sides))
    drawn = np.random.default_rng([SEED, stream]).standard_t(freedom, RESAMPLES)
    return float(sides[0].mean() - sides[1].mean()), scale * drawn


def _costs(claim: Content, folder: Path) -> Iterator[Evidence]:
    """Additional time relative to learned positions, in percent, from ``diet-mt bench encoder``."""
    cost: Content = claim.get("cost", {})
    file = folder / cost.get("file", "")
    for row in read_dicts(file, ["encoding", "ratio_median"]) if file.is_file() else ():
        if row["encoding"] in cost["encodings"]:
            paper = COSTS[row["encoding"]][row["shape"]][row["measure"] == "forward"]
            distance = 100 * (row["ratio_high"] - row["ratio_low"])
            yield Evidence(
                claim["claim"],
                (row["encoding"], "learned"),
                f"BERT_{row['shape'].upper()}, {row['measure']}, {row['device']}",
                100 * (row["ratio_median"] - 1),
                _MEDIAN * distance / math.sqrt(row["rounds"]),
                paper=paper,
                margin=cost["within"] if paper <= cost["within"] else None,
                sizes={"rounds": row["rounds"]},
                form="+.1f",
                unit=" %",
            )


def _ranks(claim: Content, folder: Path) -> Iterator[Evidence]:
    """Lowest rank of any head of the first system minus the highest of the second."""
    rank: Content = claim.get("rank", {})
    for file in (folder / name for name in rank.get("files", ())):
        by_what: dict[str, dict[str, list[int]]] = {}
        keys = ["system", "what", "rank", "tokens"]
        rows = read_dicts(file, keys) if file.is_file() else []
        for row in rows:
            by_what.setdefault(row["what"], {}).setdefault(row["system"], []).append(row["rank"])
        one, other = rank["pair"]
        for what, ranks in by_what.items():
            for before in ("", "roberta_"):
                pair = before + one, before + other
                if {*pair} <= ranks.keys():
                    value = min(ranks[pair[0]]) - max(ranks[pair[1]])
                    data = f"{what}, {rows[0]['tokens']} tokens"
                    needs = "--position-rank above the head size"
                    yield Evidence(
                        claim["claim"], pair, data, value, half=0.0, needs=needs, form="+.0f"
                    )


COLUMNS: list[Column[Evidence]] = [
    Column("claim", lambda e: e.claim, number=False),
    Column("difference", lambda e: " - ".join(filter(None, e.pair)), number=False),
    Column("data", lambda e: e.data, number=False),
    Column(
        "paper",
        lambda e: e.text(e.paper),
        "of BLEU base models on newstest2018, of tasks BERT base, of time on a TPU.",
    ),
    Column(
        "ours",
        lambda e: e.text(e.value, half=e.half or None),
        "BLEU, points of GLUE and XTREME, % of time, or rank, and half of the 95 % interval: of "
        "BLEU over sentences and seeds, of tasks over pretrained models or, of a single one, over "
        "seeds of fine-tuning, of time over rounds.",
    ),
    Column(
        "detectable",
        lambda e: e.text(e.detectable, e.form[1:]),
        "smallest true difference that is significant (uncorrected) with a probability of 80 %, "
        f"about {DETECTABLE:.2f} times half of the interval.",
    ),
    Column("seeds", lambda e: e.seeds, "of fine-tuning if tasks have one pretrained model."),
    Column("p", lambda e: e.p, "Holm-corrected for the data sets of a difference.", ".4f"),
    Column(
        "verdict",
        lambda e: e.verdict,
        "confirmed: significant on the side of the claim, however small the paper's difference is "
        f"(BLEU: p ≤ {LEVEL}; otherwise the interval excludes 0), or at most 5 % more time; "
        "contradicted: on the other side; not decidable with one seed of every system.",
        number=False,
    ),
    Column(
        "to decide it",
        lambda e: e.takes,
        f"an estimate: data with which the paper's difference, or {TARGET} where it has none, is "
        "detectable: seeds of each system, sentences, and hours of all trainings.",
        number=False,
    ),
]


def claims_board(every: Sequence[Evidence]) -> list[Block]:
    """The table of claims, with repeated names omitted, and its legend."""
    before = ["", *(each.claim for each in every)]
    rows = [
        replace(each, claim="") if each.claim == last else each
        for each, last in zip(every, before, strict=False)
    ]
    shown = table(rows, COLUMNS)
    return [shown, Items(legend([shown]))]


def brief_board(every: Sequence[Evidence]) -> list[Block]:
    """A line for each claim and pair of systems: data sets and our differences, by verdict."""
    verdicts, rows, last = (CONFIRMED, CONTRADICTED, UNDECIDED), [], ""
    pairs: dict[tuple[str, tuple[str, str]], list[Evidence]] = {}
    for each in every:
        pairs.setdefault((each.claim, each.pair), []).append(each)
    for (claim, pair), data in pairs.items():
        cells = ["; ".join(each.brief for each in data if each.verdict == v) for v in verdicts]
        rows.append(["" if claim == last else claim, " - ".join(filter(None, pair)), *cells])
        last = claim
    heads = ["claim", "difference", *verdicts]
    return [Table(heads, rows, [False] * len(heads))]


def summary(every: Sequence[Evidence]) -> Any:
    """Chen et al. 2021, figure 1: gains of absolute and relative positions per head over positions
    at the input, by benchmark; hollow bars are the paper's.
    """
    of_input = [each for each in every if each.pair[1] in INPUT]
    gains = {(each.data, each.pair[0].split()[0].replace("-", "_")): each for each in of_input}
    data = list(dict.fromkeys(each.data for each in of_input))
    figure, axes = pyplot().subplots(figsize=(7, 1.2 + 0.6 * len(data)), layout="constrained")
    handles = []
    for place, (system, label) in enumerate(SUMMARY.items()):
        ours = {"facecolor": color_of(system), "edgecolor": color_of(system)}
        paper = {**ours, "facecolor": "none"}
        handles.append(pyplot().Rectangle((0, 0), 1, 1, **ours, label=label))
        handles.append(pyplot().Rectangle((0, 0), 1, 1, **paper, label=f"{label}, paper"))
        error = {"capsize": 2.5, "error_kw": {"linewidth": 1}}
        for row, name in enumerate(data):
            if each := gains.get((name, system)):
                low = row - 0.27 + 0.36 * place
                dark = {"ecolor": "0.25" if each.known else "0.75", **error}
                how = {"xerr": each.half, **dark} if each.half else {}
                axes.barh(low, each.value, height=0.17, **ours, **how)
                if each.paper is not None:
                    axes.barh(low + 0.18, each.paper, height=0.17, **paper)
    axes.axvline(0, color="0.25", linewidth=0.8)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8)
    axes.set_yticks(range(len(data)), data, fontsize=8)
    axes.set_ylim(len(data) - 0.5, -0.5)
    axes.set_xlabel(
        "points above positions at the input, with 95 % intervals\n(gray: without the variance "
        "between trainings);\nthe paper's translation: WMT18",
        fontsize=8,
    )
    axes.legend(handles=handles, fontsize=7, loc="best", frameon=False)
    return figure
