"""Results that nobody measured: newstest2018 in four directions, for what a full board looks like.

python -m tests.leaderboard.made_up FOLDER      writes them there, to be looked at
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from diet_mt.evaluation.comparisons import Comparison, Key, key_of, mark_of
from diet_mt.evaluation.curves import LearningCurve
from diet_mt.evaluation.groups import group
from diet_mt.evaluation.json_rows import write_rows
from diet_mt.evaluation.records import Result

from ..evaluation.rows import seeds_of

# Direction -> system -> BLEU of each seed.
TABLE = {
    "en-de": {
        "sinusoidal": (38.61, 38.97),
        "shaw": (39.9,),
        "diet_rel": (39.21, 39.6, 39.43),
        "t5": (39.5,),
    },
    "de-en": {"sinusoidal": (38.3,), "shaw": (38.71,), "diet_rel": (38.36,), "none": (31.02,)},
    "en-cs": {"sinusoidal": (18.4, 18.51), "diet_rel": (18.7, 18.44), "diet_abs_lin": (18.1,)},
    "cs-en": {"sinusoidal": (22.81,), "shaw": (23.7,), "diet_rel": (23.99,), "rotary": (24.02,)},
}


# Of systems that are the paper's by options alone.
PUBLISHED = {
    "shaw": "shaw sharing=head-wise clip=20 values=True in=encoder,decoder scale=head",
    "diet_rel": "diet-rel sharing=none scale=head",
}


def learning(system: str, points: Iterable[tuple[int, float]], seed: int = 1) -> LearningCurve:
    """A training with its perplexities."""
    found: list[list[float | None]] = [[update, None, value] for update, value in points]
    return LearningCurve(system, system, "none", seed, 0, {}, found, "", "")


def results() -> list[Result]:
    """Rows with every field filled, as an evaluation on a GPU would."""
    found = []
    for direction, systems in TABLE.items():
        for system, scores in systems.items():
            rows = seeds_of(
                system,
                dict(enumerate(scores, start=1)),
                size="base",
                corpus=f"wmt18.{direction}",
                direction=direction,
                test_set="newstest2018",
                sentences=2998,
                bleu_ci=0.83,
                length_ratio=0.975,
                precisions="69.12/44.05/30.51/21.18",
                length_penalty="gnmt",
                checkpoint="checkpoint_average.pt",
                averaged=10,
                updates=250_000,
                train_tokens=6_100_000_000,
                parameters=63_082_496,
                words_per_second=1834.0,
                device="cuda NVIDIA H200",
                references_sha256=direction * 16,
            )
            found += [replace(row, positions=PUBLISHED.get(system, row.positions)) for row in rows]
    return found


def comparisons(rows: list[Result]) -> dict[Key, Comparison]:
    """One for each system but one, without counts."""
    return {
        key_of(line.results): Comparison(
            bleu_ci=line.half_width,
            p_values={
                mark_of(other.results): round(0.4 / (1 + 10 * abs(line.bleu - other.bleu)) ** 2, 4)
                for other in each.lines
                if other is not line
            },
            signature="nrefs:1|bs:1000|seed:12345|tok:13a|version:2.6.0",
        )
        for each in group(rows)
        for line in each.lines
        if line.system != "shaw"
    }


def write(folder: Path) -> Path:
    """Writes the rows; returns their file."""
    file = folder / "made-up.jsonl"
    write_rows(file, results())
    return file


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
