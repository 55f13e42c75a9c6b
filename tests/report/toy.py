"""Made-up results: with hypotheses and sentence counts, or with given p-values."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from diet_mt.evaluation.groups import Line, group
from diet_mt.evaluation.hypotheses import Sentences, count_rows
from diet_mt.evaluation.json_rows import write_rows
from diet_mt.evaluation.records import Result
from diet_mt.evaluation.scores import interval, score
from diet_mt.report import sections
from diet_mt.report.sections import Section, section_of

from ..evaluation.rows import row

SENTENCES = 240
# System -> seeds, and the share of words that each changes.
SYSTEMS = {"sinusoidal": (2, 0.4), "diet_rel": (2, 0.3), "shaw": (1, 0.28), "none": (1, 0.7)}
WORDS = ["the", "a", "dog", "cat", "<b>", "runs", "near", "&", "with", '"blue"', "</script>", "of"]
WILD = "</script><img/src=x/onerror=alert(1)>"


def write_toy(folder: Path) -> tuple[Path, Path]:
    """The file of rows, with sentence counts, and the references, next to their sources."""
    draw = random.Random(1)
    count = SENTENCES
    lengths = [draw.randint(4, 24) for _ in range(count)]
    references = [" ".join(draw.choices(WORDS, k=length)) + " ." for length in lengths]
    references = [f"{line} {WILD}" if n % 3 else line for n, line in enumerate(references)]
    files = {folder / "test.de": references, folder / "test.en": [r[::-1] for r in references]}
    for file, lines in files.items():
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    rows = []
    for number, (system, (seeds, share)) in enumerate(SYSTEMS.items()):
        for seed in range(1, seeds + 1):
            hypotheses = [_changed(line, share, draw) for line in references]
            text = "".join(f"{line}\n" for line in hypotheses)
            name = f"toy.en-de/{system}.{seed}.hyp.txt"
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
            mean, half = interval(hypotheses, references)
            rows.append(
                row(
                    system=system,
                    arch=f"{system}_tiny",
                    positions=system.replace("_", "-"),
                    seed=seed,
                    sentences=count,
                    parameters=1_000_000 + 1000 * number,
                    hypotheses=name,
                    hypotheses_sha256=sha256(text.encode()).hexdigest(),
                    references_sha256=sha256((folder / "test.de").read_bytes()).hexdigest(),
                    bleu_mean=mean,
                    bleu_ci=half,
                    **score(hypotheses, references),
                )
            )
    write_rows(folder / "toy.en-de.jsonl", rows)
    count_rows([folder / "toy.en-de.jsonl"], [folder / "test.de"])
    return folder / "toy.en-de.jsonl", folder / "test.de"


def _changed(line: str, share: float, draw: random.Random) -> str:
    words = [w if draw.random() > share else draw.choice(WORDS) for w in line.split(" ")]
    return " ".join(words)


NOTHING = Sentences({}, {})


class Tests:
    """Stands for resamples: p-values by the systems of a pair, in the order of the alphabet."""

    __test__ = False

    def __init__(self, lines: Sequence[Line], p: Callable[[str, str], float]) -> None:
        self.lines, self._p = tuple(lines), p

    def p(self, first: Line, second: Line) -> float:
        return self._p(*sorted((first.system, second.system)))

    def half_width(self, line: Line) -> float:
        return 0.75


def section(
    rows: Sequence[Result],
    p: Callable[[str, str], float] | None = None,
    systems: Sequence[str] = (),
    uncounted: Sequence[str] = (),
) -> Section:
    """The section of one group; ``p``: p-values of pairs, of all systems that are counted."""
    (each,) = group(rows)
    with pytest.MonkeyPatch.context() as patch:
        lines = [line for line in each.lines if line.system not in uncounted]
        patch.setattr(sections, "resampled_group", lambda *_: Tests(lines, p) if p else None)
        return section_of(each, NOTHING, systems)
