"""A toy language pair: every word has one translation, and neighbours change places.

Word order is thus something to learn; sentences are of many lengths, so batches hold padding.
"""

from __future__ import annotations

import random
from pathlib import Path

WORDS = {"bal": "ONE", "der": "TWO", "fim": "SIX", "gol": "TEN", "hup": "RED", "jas": "BIG"} | {
    "kem": "OLD", "lir": "NEW", "mon": "HOT", "nuf": "DRY", "pas": "WET", "rek": "LOW"
}  # fmt: skip
# Sentences per part. fairseq-fixed cuts what exceeds a multiple of eight unless it is told not to.
SIZES = {"train": 300, "valid": 21, "test": 37}
LONGEST = 12  # words


def translate(words: list[str]) -> list[str]:
    """The right translation: word for word, the words of each pair in reverse."""
    turned = [words[i ^ 1] if i ^ 1 < len(words) else words[i] for i in range(len(words))]
    return [WORDS[word] for word in turned]


def write_corpus(folder: Path) -> None:
    """``PART.src`` and ``PART.tgt`` for each part of SIZES."""
    draw = random.Random(2021)
    for part, size in SIZES.items():
        sources = [draw.choices(sorted(WORDS), k=draw.randint(2, LONGEST)) for _ in range(size)]
        for side, lines in (("src", sources), ("tgt", [translate(words) for words in sources])):
            text = "".join(" ".join(words) + "\n" for words in lines)
            (folder / f"{part}.{side}").write_text(text, encoding="utf-8", newline="\n")
