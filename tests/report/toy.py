"""Results with hypotheses: references with some of their words changed, and sentence counts."""

from __future__ import annotations

import random
from hashlib import sha256
from pathlib import Path

from diet_mt.evaluation.hypotheses import count_rows
from diet_mt.evaluation.json_rows import write_rows
from diet_mt.evaluation.scores import interval, score

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
