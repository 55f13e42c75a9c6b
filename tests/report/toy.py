"""Made-up results: with hypotheses and sentence counts, or with given p-values."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from diet_mt.evaluation.groups import Line, group
from diet_mt.evaluation.hypotheses import Sentences, Texts
from diet_mt.evaluation.records import Result
from diet_mt.evaluation.scores import scores
from diet_mt.report import sections
from diet_mt.report.sections import Section, section_of

from ..evaluation.rows import put, row

SENTENCES = 240
# System -> seeds, and the share of words that each changes.
SYSTEMS = {"sinusoidal": (2, 0.4), "diet_rel": (2, 0.3), "shaw": (1, 0.28), "none": (1, 0.7)}
WORDS = ["the", "a", "dog", "cat", "<b>", "runs", "near", "&", "with", '"blue"', "</script>", "of"]
WILD = "</script><img/src=x/onerror=alert(1)>"


@cache
def _toy() -> TemporaryDirectory[str]:
    """Written once in a process."""
    made = TemporaryDirectory()
    _write(Path(made.name))
    return made


def write_toy(folder: Path) -> tuple[Path, Path]:
    """The file of rows, with sentence counts, and the references, next to their sources."""
    shutil.copytree(_toy().name, folder, dirs_exist_ok=True)
    return folder / "toy.en-de.jsonl", folder / "test.de"


def _write(folder: Path) -> None:
    draw = random.Random(1)
    lengths = [draw.randint(4, 24) for _ in range(SENTENCES)]
    references = [" ".join(draw.choices(WORDS, k=length)) + " ." for length in lengths]
    references = [f"{line} {WILD}" if n % 3 else line for n, line in enumerate(references)]
    files = {folder / "test.de": references, folder / "test.en": [r[::-1] for r in references]}
    for file, lines in files.items():
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    for number, (system, (seeds, share)) in enumerate(SYSTEMS.items()):
        for seed in range(1, seeds + 1):
            hypotheses = [_changed(line, share, draw) for line in references]
            result = row(
                system=system,
                arch=f"{system}_tiny",
                positions=system.replace("_", "-"),
                seed=seed,
                parameters=1_000_000 + 1000 * number,
                checkpoint_sha256=f"{number}{seed}" * 32,
                hypotheses=f"toy.en-de/{system}.{seed}.hyp.txt",
                **scores(hypotheses, references),
            )
            put(folder, result, hypotheses, folder / "test.de", source=True)


def _changed(line: str, share: float, draw: random.Random) -> str:
    words = [w if draw.random() > share else draw.choice(WORDS) for w in line.split(" ")]
    return " ".join(words)


NOTHING = Sentences({}, {row().references_sha256: Texts(row().references_sha256, [], [])})


class Tests:
    """Stands for resamples: p-values by the systems of a pair, in the order of the alphabet."""

    __test__ = False

    def __init__(self, p: Callable[[str, str], float], lines: Sequence[Line]) -> None:
        self._p, self.lines = p, lines

    def p(self, first: Line, second: Line) -> float:
        return self._p(*sorted((first.system, second.system)))

    def half_width(self, line: Line) -> float:
        return 0.75

    def difference(self, first: Line, second: Line) -> tuple[float, float, float]:
        return first.bleu - second.bleu, 0.75, self.p(first, second)


def section(
    rows: Sequence[Result],
    p: Callable[[str, str], float] = lambda *_: 0.5,
    systems: Sequence[str] = (),
) -> Section:
    """The section of one group; ``p``: p-values of pairs."""
    (each,) = group(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections, "resample", lambda lines, _: Tests(p, lines))
        return section_of(each, NOTHING, systems)
