"""Results with hypotheses that nobody's model wrote: references with some of their words changed.

python -m tests.leaderboard.said FOLDER [SYSTEMS]      writes them there, to be looked at
"""

from __future__ import annotations

import dataclasses
import random
import sys
from hashlib import sha256
from pathlib import Path

from diet_mt.corpora.parallel import read_lines
from diet_mt.evaluation.bleu import interval, score
from diet_mt.evaluation.json_rows import write_rows

from ..evaluation.rows import row

SENTENCES = 240
# System -> seeds, and the share of words that each changes.
SYSTEMS = {"sinusoidal": (2, 0.4), "diet_rel": (2, 0.3), "shaw": (1, 0.28), "none": (1, 0.7)}
WORDS = ["the", "a", "dog", "cat", "<b>", "runs", "near", "&", "with", '"blue"', "</script>", "of"]
WILD = "</script><img/src=x/onerror=alert(1)>"


def write_said(folder: Path, systems: int = 0) -> tuple[Path, Path]:
    """The file of rows and the references, with sources beside them.

    ``systems``: so many more, of the same kind, and then a few sentences.
    """
    draw = random.Random(1)
    count = 20 if systems else SENTENCES
    lengths = [draw.randint(4, 24) for _ in range(count)]
    references = [" ".join(draw.choices(WORDS, k=length)) + " ." for length in lengths]
    references = [f"{line} {WILD}" if n % 3 else line for n, line in enumerate(references)]
    files = {folder / "test.de": references, folder / "test.en": [r[::-1] for r in references]}
    for file, lines in files.items():
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    more = {f"t5_{number}": (1, 0.2 + 0.5 * draw.random()) for number in range(systems)}
    rows = []
    for number, (system, (seeds, share)) in enumerate({**SYSTEMS, **more}.items()):
        for seed in range(1, seeds + 1):
            said = [_changed(line, share, draw) for line in references]
            text = "".join(f"{line}\n" for line in said)
            name = f"toy.en-de/{system}.{seed}.hyp.txt"
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
            mean, half = interval(said, references) if system in SYSTEMS else (30.0, 1.0)
            rows.append(
                row(
                    system=system,
                    arch=f"{system}_tiny",
                    positions=system.split("_")[0] if system in more else system.replace("_", "-"),
                    seed=seed,
                    sentences=count,
                    parameters=1_000_000 + 1000 * number,
                    hypotheses=name,
                    hypotheses_sha256=sha256(text.encode()).hexdigest(),
                    references_sha256=sha256((folder / "test.de").read_bytes()).hexdigest(),
                    bleu_mean=mean,
                    bleu_ci=half,
                    **dataclasses.asdict(score(said, list(read_lines(folder / "test.de")))),
                )
            )
    write_rows(folder / "toy.en-de.jsonl", rows)
    return folder / "toy.en-de.jsonl", folder / "test.de"


def _changed(line: str, share: float, draw: random.Random) -> str:
    words = [w if draw.random() > share else draw.choice(WORDS) for w in line.split(" ")]
    return " ".join(words)


if __name__ == "__main__":
    print(*write_said(Path(sys.argv[1]), int((sys.argv[2:] or ["0"])[0])))
