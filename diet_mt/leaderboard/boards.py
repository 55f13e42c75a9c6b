"""What the leaderboard of translation shows, as blocks: tables, how to read them, with what scores
were computed, and the commands behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..blocks import Block, Commands, Folded, Grid, Heading, Items, Note
from ..evaluation.commands import general
from ..evaluation.groups import BASELINE, Group
from ..evaluation.resampling import RESAMPLES
from .published import source
from .standings import LEVEL, Section
from .tables import HOLM, Table, evaluations_table, rows, standings_table
from .where import where_they_act

EVALUATIONS = "Every evaluation: length, n-gram precisions, updates"
FOLDED = "The commands, ARCH for the system"
# What a reader in a hurry wants to see.
BRIEF = ("system", "BLEU", "±", "length", f"to {BASELINE}", HOLM)
HOW_TO_TEST = "diet-mt compare RESULTS.jsonl --references FILE"
ARCH = "ARCH"  # in a command, for any system of the table


def board(sections: Sequence[Section]) -> list[Block]:
    """Tables with signatures and commands, and how to read them."""
    blocks: list[Block] = []
    for section in sections:
        blocks += [Heading(section.group.title), grid(standings_table(section))]
        for where in where_they_act(section):
            blocks += [Note(f"{where.caption}:"), grid(where.table)]
        blocks.append(Items([*remarks(section), *signatures(section)]))
        blocks.append(Folded(EVALUATIONS, grid(evaluations_table(section.group))))
        blocks.append(Commands(FOLDED, commands(section.group)))
    return [*blocks, *(Note(line) for line in [" ".join(legend(sections))] if line)]


def brief_board(sections: Sequence[Section]) -> list[Block]:
    """Headings and narrow tables alone; where an encoding acts in a part of its attention stands
    only in the table of that.
    """
    blocks: list[Block] = []
    for section in sections:
        tables = where_they_act(section)
        whole = section.without({name for where in tables for name in where.names})
        blocks.append(Heading(section.group.title))
        if whole.standings:
            table = standings_table(whole)
            blocks.append(grid([column for column in table if column.title in BRIEF]))
        for where in tables:
            blocks += [Note(f"{where.caption}:"), grid(where.table)]
    return blocks


def grid(table: Table) -> Grid:
    """A table as it is read."""
    return Grid(
        [column.title for column in table],
        [[cell.text for cell in row] for row in rows(table)],
        [column.number for column in table],
    )


def legend(sections: Iterable[Section]) -> list[str]:
    """One sentence for each thing that a reader of these tables needs to know."""
    sections = list(sections)
    standings = [standing for section in sections for standing in section.standings]
    lines = [standing.line for standing in standings if standing.line]
    found = []
    if any(line.several_seeds for line in lines):
        found.append("BLEU and chrF are means over the seeds.")
    if any(standing.gain for standing in standings):
        found.append(
            f"to {BASELINE}: BLEU of the table minus that of {BASELINE}, both before they are "
            "rounded: the difference of the means over the seeds."
        )
    compared = [standing for standing in standings if standing.comparison]
    if lines:
        found.append("±: half of the 95 % interval of BLEU, by the bootstrap.")
    if compared:
        found.append(
            f"Bootstrap: each of {RESAMPLES:,} resamples has as many sentences of the test set, "
            "drawn with replacement and the same for all systems."
        )
        if any(section.has_seeds for section in sections):
            found.append(
                "To the mean of a system's n seeds it adds their chance: a normally distributed "
                "number of variance v / n, where v is the variance between seeds, pooled over all "
                "systems of the table that have several, less what the sentences explain of it; "
                "as it is an estimate, each resample draws it anew, by its chi-square distribution."
            )
    elif lines:
        found.append("SacreBLEU's, over the sentences of the test set; mean of the seeds.")
    if any(line.roles is not None for line in lines):
        found.append(
            "roles: of the sentences whose subject and object could change places, in %, "
            "translations nearer to the reference than to that of the swapped sentence; 50 is "
            "chance."
        )
    if any(standing.p_value is not None for standing in standings):
        found.append(
            f"{HOLM}: of the difference to {BASELINE}, by the same resamples, two-sided: how often "
            "equal systems would differ as much; corrected for the number of systems, shown or not "
            "(Holm 1979). ≤: the smallest that its resamples can give."
        )
    if any(standing.cluster for standing in standings):
        found.append(
            f"cluster: a new one begins where every system above is better than every system below "
            f"with p ≤ {LEVEL}, so two within one may differ; it is not corrected for the number "
            "of pairs."
        )
    if any(line.length_ratio for line in lines):
        found.append(
            "length: words of the translations over those of the references, as BLEU counts them; "
            "mean of the seeds. Below 1 BLEU is multiplied by exp(1 - 1 / length)."
        )
    if len(compared) < len(lines):
        found.append(f"Rows without sentence counts have no p-value; `{HOW_TO_TEST}` adds them.")
    if any(standing.published for standing in standings):
        found.append(f"paper: {source()}.")
    if lines:
        pages = dict.fromkeys(section.speeds for section in sections if section.speeds)
        found += [f"Speed is measured side by side, in {page}." for page in pages]
    return found


def remarks(section: Section) -> list[str]:
    """What is particular about one group: lines trained otherwise than the baseline, or whose seeds
    differ in more than the seed, and tests that know nothing of seeds.
    """
    otherwise: dict[str, list[str]] = {}
    for name, options in section.group.trained_otherwise.items():
        otherwise.setdefault(options, []).append(name)
    found = [
        f"Trained otherwise than {BASELINE}, {options}: {', '.join(names)}."
        for options, names in otherwise.items()
    ]
    different = [
        line.name
        for line in section.group.lines
        if len({general(result.train_command) for result in line.results}) > 1
    ]
    if different:
        found.append(f"Seeds trained by different commands: {', '.join(different)}.")
    if not section.has_seeds and any(each.comparison for each in section.standings):
        found.append(
            "No system of this table has a second seed: intervals and p-values are over the "
            "sentences alone, not the choice of the seed."
        )
    return found


def signatures(section: Section) -> list[str]:
    """SacreBLEU's signatures and the versions of the rest."""
    results = section.group.results
    return [
        *sorted({f"BLEU {result.bleu_signature}" for result in results}),
        *sorted({f"chrF {result.chrf_signature}" for result in results}),
        *sorted({f"{result.fairseq}, torch {result.torch}" for result in results}),
    ]


def commands(group: Group) -> list[str]:
    """Trainings, then evaluations, with SEED, CHECKPOINTS and ARCH for what differs in a group."""
    train = {general(result.train_command, ARCH): None for result in group.results}
    generate = {general(result.generate_command): None for result in group.results}
    return [command for command in [*train, *generate] if command]
