"""GLUE and XNLI as they are published, in files of a few made-up rows.

The rows can be learnt: a sentence is acceptable, or positive, if it says "good"; a pair belongs
together if both of its sentences speak of the same thing.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

THINGS = ("cat", "dog", "hen", "pig", "ox", "ram", "bee", "owl")
VERBS = ("sees", "eats", "hears", "likes")
WORDS = (*THINGS, *VERBS, "the", "a", "good", "bad", "it", "and")
SIZES = {"train": 12, "dev": 6, "test": 5}
NLI = ("contradiction", "neutral", "entailment")
# A quotation mark at the beginning of a field is where a CSV reader would go wrong.
QUOTED = '"the cat'

_MNLI = "index promptID pairID genre sentence1_binary_parse sentence2_binary_parse sentence1_parse"
_MNLI_HEADER = [*_MNLI.split(), "sentence2_parse", "sentence1", "sentence2"]
XNLI_HEADER = [
    *("language", "gold_label", "sentence1_binary_parse", "sentence2_binary_parse"),
    *("sentence1_parse", "sentence2_parse", "sentence1", "sentence2", "promptID", "pairID"),
    *("genre", "label1", "label2", "label3", "label4", "label5"),
    *("sentence1_tokenized", "sentence2_tokenized", "match"),
]


def sentence(draw: random.Random, thing: str, quality: str = "") -> str:
    words = ["the", quality, thing, draw.choice(VERBS), "the", draw.choice(THINGS)]
    return " ".join(word for word in words if word)


def single(draw: random.Random, label: int) -> str:
    return sentence(draw, draw.choice(THINGS), "good" if label else "bad")


def pair(draw: random.Random, same: bool) -> tuple[str, str]:
    first, second = draw.sample(THINGS, 2)
    return sentence(draw, first), sentence(draw, first if same else second)


def write_table(path: Path, rows: Sequence[Sequence[object]], start: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join("\t".join(map(str, row)) + "\n" for row in rows)
    path.write_text(start + text, encoding="utf-8", newline="\n")


def write_single(folder: Path, sizes: dict[str, int], seed: int = 1) -> None:
    """CoLA, whose train and dev have no header, and SST-2."""
    draw = random.Random(seed)
    for part, size in sizes.items():
        labels = [number % 2 for number in range(size)]
        texts = [single(draw, label) for label in labels]
        texts[0] = f"{QUOTED} is {'good' if labels[0] else 'bad'}"
        numbers = range(size)
        if part == "test":
            indexed = [("index", "sentence"), *zip(numbers, texts, strict=True)]
            write_table(folder / "CoLA" / "test.tsv", indexed)
            write_table(folder / "SST-2" / "test.tsv", indexed)
            continue
        marks = ["" if label else "*" for label in labels]
        cola = [("gj04", *row) for row in zip(labels, marks, texts, strict=True)]
        write_table(folder / "CoLA" / f"{part}.tsv", cola)
        write_table(
            folder / "SST-2" / f"{part}.tsv",
            [("sentence", "label"), *zip(texts, labels, strict=True)],
        )


def write_pairs(folder: Path, sizes: dict[str, int], seed: int = 2) -> None:
    """All tasks of pairs."""
    draw = random.Random(seed)
    for part, size in sizes.items():
        same = [number % 2 == 0 for number in range(size)]
        pairs = [pair(draw, each) for each in same]
        yes_no = [int(each) for each in same]
        entailed = ["entailment" if each else "not_entailment" for each in same]
        scores = [f"{4.75 if each else 0.5}" for each in same]
        labelled = part != "test"

        def write(
            task: str,
            header: Sequence[str],
            start: Sequence[object],
            labels: Sequence[object],
            part: str = part,
            pairs: Sequence[tuple[str, str]] = pairs,
            labelled: bool = labelled,
        ) -> None:
            columns = header if labelled else header[:-1]
            rows: list[Sequence[object]] = [columns]
            for number, (texts, label) in enumerate(zip(pairs, labels, strict=True)):
                rows.append((number, *start, *texts, *([label] if labelled else [])))
            write_table(folder / task / f"{part}.tsv", rows)

        write("RTE", ("index", "sentence1", "sentence2", "label"), (), entailed)
        write("WNLI", ("index", "sentence1", "sentence2", "label"), (), yes_no)
        write("QNLI", ("index", "question", "sentence", "label"), (), entailed)
        sts = "index genre filename year old_index source1 source2 sentence1 sentence2 score"
        write("STS-B", sts.split(), ("g", "f", 2012, 3, "none", "none"), scores)
        _write_mrpc_and_qqp(folder, part, pairs, yes_no)
        _write_mnli(folder, part, pairs)


def _write_mrpc_and_qqp(
    folder: Path, part: str, pairs: Sequence[tuple[str, str]], labels: Sequence[int]
) -> None:
    mrpc: list[Sequence[object]] = [("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")]
    qqp: list[Sequence[object]] = [("id", "qid1", "qid2", "question1", "question2", "is_duplicate")]
    if part == "test":
        mrpc[0], qqp[0] = ("index", *mrpc[0][1:]), ("id", "question1", "question2")
    for number, (texts, label) in enumerate(zip(pairs, labels, strict=True)):
        first = number if part == "test" else label
        mrpc.append((first, 10, 20, *texts))
        qqp.append((number, *texts) if part == "test" else (number, 1, 2, *texts, label))
    write_table(folder / "MRPC" / f"{part}.tsv", mrpc, "" if part == "test" else "\ufeff")
    write_table(folder / "QQP" / f"{part}.tsv", qqp)


def _write_mnli(folder: Path, part: str, pairs: Sequence[tuple[str, str]]) -> None:
    more = {"train": 1, "dev": 5, "test": 0}[part]
    labels = [f"label{number + 1}" for number in range(more)] + (["gold_label"] if more else [])
    for name in ["train"] if part == "train" else [f"{part}_matched", f"{part}_mismatched"]:
        rows: list[Sequence[object]] = [[*_MNLI_HEADER, *labels]]
        for number, texts in enumerate(pairs):
            given = ["n/a"] * more + ([NLI[number % 3]] if more else [])
            rows.append([number, *["n/a"] * 7, *texts, *given])
        write_table(folder / "MNLI" / f"{name}.tsv", rows)


def write_glue(folder: Path, sizes: dict[str, int] | None = None) -> Path:
    """The folder, with a folder for each of the nine tasks."""
    write_single(folder, sizes or SIZES)
    write_pairs(folder, sizes or SIZES)
    return folder


def xnli_rows(language: str, count: int, seed: int = 3) -> list[list[object]]:
    draw = random.Random(seed)
    rows: list[list[object]] = []
    for number in range(count):
        texts = pair(draw, number % 3 == 2)
        end = [number, number, "g", *["n/a"] * 8]
        rows.append([language, NLI[number % 3], *["n/a"] * 4, *texts, *end])
    return rows


def write_xnli(folder: Path, languages: Sequence[str] = ("en", "sw"), rows: int = 6) -> Path:
    """The folder, with one file for the dev and one for the test sets of all languages."""
    for kind, count in (("dev", rows), ("test", rows + 3)):
        found = [row for language in languages for row in xnli_rows(language, count)]
        write_table(folder / f"xnli.{kind}.tsv", [XNLI_HEADER, *found])
    return folder
