"""GLUE, XNLI and SQuAD as they are published, in files of a few generated rows; small tokenizers.

The rows can be learnt: a sentence is acceptable, or positive, if it says "good"; a pair belongs
together if both of its sentences speak of the same thing; the answer to every question is the
colour in its context.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from diet_mt.bert.squad import GoldAnswer, Question
from diet_mt.bert.tokenizer import SENTENCEPIECE, WORDPIECE, learn_wordpiece, load
from diet_mt.corpora import pieces
from diet_mt.corpora.binarized import write_dictionary

from ..corpora.wmt18 import sentences

KINDS = (WORDPIECE, SENTENCEPIECE)
THINGS = ("cat", "dog", "hen", "pig", "ox", "ram", "bee", "owl")
VERBS = ("sees", "eats", "hears", "likes")
WORDS = (*THINGS, *VERBS, "the", "a", "good", "bad", "it", "and")
SIZES = {"train": 12, "dev": 6, "test": 5}
NLI = ("contradiction", "neutral", "entailment")
# A quotation mark at the beginning of a field is where a CSV reader would go wrong.
QUOTED = '"the cat'
COLOURS = ("red", "blue", "green", "yellow")

_PARSES = ",".join(f"sentence{n}_{kind}" for kind in ("binary_parse", "parse") for n in (1, 2))
_STSB = "index,genre,filename,year,old_index,source1,source2,sentence1,sentence2"
_MNLI = f"index,promptID,pairID,genre,{_PARSES},sentence1,sentence2"
# Task -> columns of train and dev, and of test.
COLUMNS = {
    "CoLA": ("source,label,mark,sentence", "index,sentence"),
    "SST-2": ("sentence,label", "index,sentence"),
    "MRPC": ("Quality,#1 ID,#2 ID,#1 String,#2 String", "index,#1 ID,#2 ID,#1 String,#2 String"),
    "STS-B": (f"{_STSB},score", _STSB),
    "QQP": ("id,qid1,qid2,question1,question2,is_duplicate", "id,question1,question2"),
    "MNLI": (f"{_MNLI},label1,gold_label", _MNLI),
    "QNLI": ("index,question,sentence,label", "index,question,sentence"),
    "RTE": ("index,sentence1,sentence2,label", "index,sentence1,sentence2"),
    "WNLI": ("index,sentence1,sentence2,label", "index,sentence1,sentence2"),
}
_IDS, _LABELS = {"index", "id"}, {"label", "gold_label", "is_duplicate", "Quality", "score"}
_TEXTS = {f"{part}{number}" for part in ("sentence", "question") for number in ("", 1, 2)}
_TEXTS |= {"#1 String", "#2 String"}
_XNLI = "language gold_label sentence1_binary_parse sentence2_binary_parse sentence1_parse "
_XNLI += "sentence2_parse sentence1 sentence2 promptID pairID genre label1 label2 label3 label4 "
XNLI_HEADER = (_XNLI + "label5 sentence1_tokenized sentence2_tokenized match").split()


def write_tokenizer(folder: Path, kind: str, *, size: int = 130, cased: bool = False) -> Path:
    """Learns a tokenizer of this kind into ``folder``, which is made, and returns the folder."""
    folder.mkdir()
    text = folder / "text"
    lines = (f"{pair[lang]}\n" for pair in sentences(200, seed=3) for lang in ("en", "de"))
    text.write_text("".join(lines), encoding="utf-8")
    if kind == WORDPIECE:
        learn_wordpiece([text], folder / kind, size, cased=cased)
    else:
        pieces.learn([text], folder / kind, size)
    text.unlink()
    return folder


def write_vocabulary(folder: Path, kind: str = WORDPIECE) -> Path:
    """A small tokenizer and its dictionary, as a prepared corpus has them."""
    write_tokenizer(folder, kind)
    write_dictionary(load(folder).symbols(), folder / "dict.txt", later=1)
    return folder


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


def _label(task: str, number: int) -> object:
    """Of pairs: every second one belongs together."""
    same = number % 2 == 0
    if task in ("CoLA", "SST-2"):
        return int(not same)
    named = {
        "STS-B": "4.75" if same else "0.5",
        "MNLI": NLI[number % 3],
        **dict.fromkeys(("RTE", "QNLI"), "entailment" if same else "not_entailment"),
    }
    return named.get(task, int(same))


def write_glue(folder: Path, sizes: dict[str, int] | None = None) -> Path:
    """The folder, with a folder for each of the nine tasks."""
    of_one, of_two = random.Random(1), random.Random(2)
    for part, size in (sizes or SIZES).items():
        singles = [(single(of_one, number % 2),) for number in range(size)]
        singles[0] = (f"{QUOTED} is bad",)
        pairs = [pair(of_two, number % 2 == 0) for number in range(size)]
        for task, layouts in COLUMNS.items():
            columns = layouts[part == "test"].split(",")
            # The training and dev files of CoLA have no header.
            rows: list[list[object]] = [] if "source" in columns else [[*columns]]
            for number, texts in enumerate(singles if task in ("CoLA", "SST-2") else pairs):
                rest, known = iter(texts), {"mark": "", **dict.fromkeys(_IDS, number)}
                known |= dict.fromkeys(_LABELS, _label(task, number))
                rows.append([next(rest) if c in _TEXTS else known.get(c, "n/a") for c in columns])
            ends = ("_matched", "_mismatched") if task == "MNLI" and part != "train" else ("",)
            for end in ends:
                mark = "\ufeff" if task == "MRPC" and part != "test" else ""
                write_table(folder / task / f"{part}{end}.tsv", rows, mark)
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
        rows = [row for language in languages for row in xnli_rows(language, count)]
        write_table(folder / f"xnli.{kind}.tsv", [XNLI_HEADER, *rows])
    return folder


def entry(name: str, text: str, context: str, *golds: str, **more: Any) -> dict[str, Any]:
    """A question, as SQuAD has it; each gold answer is where its text first occurs."""
    answers = [{"text": gold, "answer_start": context.index(gold)} for gold in golds]
    return {"id": name, "question": text, "answers": answers, **more}


def article(context: str, *entries: dict[str, Any]) -> dict[str, Any]:
    """One paragraph with its questions."""
    return {"title": "generated", "paragraphs": [{"context": context, "qas": list(entries)}]}


def write_squad(path: Path, *articles: dict[str, Any]) -> Path:
    content = {"version": "1.1", "data": list(articles)}
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path


def question(context: str, *golds: str, impossible: bool = False) -> Question:
    """A question about ``context``; each gold answer is where its text first occurs."""
    answers = tuple(GoldAnswer(gold, context.index(gold)) for gold in golds)
    return Question("one", "what?", context, answers, impossible)


def coloured(path: Path, count: int, seed: int, longest: int = 3) -> Path:
    """Contexts of up to ``longest`` sentences, one of which has a colour."""
    generator = random.Random(seed)
    texts = [pair["en"] for pair in sentences(60, seed=3)]
    articles = []
    for number in range(count):
        words = " ".join(generator.choices(texts, k=generator.randint(1, longest))).split()
        colour = generator.choice(COLOURS)
        words.insert(generator.randrange(len(words) + 1), colour)
        context = " ".join(words)
        qas = entry(f"{seed}.{number}", "which colour?", context, colour)
        articles.append(article(context, qas))
    return write_squad(path, *articles)
