"""Questions of our own in SQuAD's JSON, and the vocabulary for them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from diet_mt.bert.questions.squad import Answer, Question
from diet_mt.bert.tokenizer import WORDPIECE, load
from diet_mt.corpora.dictionary import write_dictionary

from ...corpora.wmt18 import sentences
from ..tokenizers_made import write_tokenizer

# The answer to every made-up question is the one of these that its context has.
COLOURS = ("red", "blue", "green", "yellow")


def entry(name: str, text: str, context: str, *golds: str, **more: Any) -> dict[str, Any]:
    """A question, as SQuAD has it; each gold answer where it stands first."""
    answers = [{"text": gold, "answer_start": context.index(gold)} for gold in golds]
    return {"id": name, "question": text, "answers": answers, **more}


def article(context: str, *entries: dict[str, Any]) -> dict[str, Any]:
    """One paragraph with its questions."""
    return {"title": "made up", "paragraphs": [{"context": context, "qas": list(entries)}]}


def write_squad(path: Path, *articles: dict[str, Any]) -> Path:
    content = {"version": "1.1", "data": list(articles)}
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path


def question(context: str, *golds: str, impossible: bool = False) -> Question:
    """A question about ``context``, with each gold answer where it stands first."""
    answers = tuple(Answer(gold, context.index(gold)) for gold in golds)
    return Question("one", "what?", context, answers, impossible)


def coloured(path: Path, count: int, seed: int, longest: int = 3) -> Path:
    """Contexts of up to ``longest`` sentences, in one of which a colour stands."""
    generator = random.Random(seed)
    texts = [pair["en"] for pair in sentences(60, seed=3)]
    articles = []
    for number in range(count):
        words = " ".join(generator.choices(texts, k=generator.randint(1, longest))).split()
        colour = generator.choice(COLOURS)
        words.insert(generator.randrange(len(words) + 1), colour)
        context = " ".join(words)
        articles.append(
            article(context, entry(f"{seed}.{number}", "which colour?", context, colour))
        )
    return write_squad(path, *articles)


def write_vocabulary(folder: Path, kind: str = WORDPIECE) -> Path:
    """A small tokenizer and its dictionary, as a prepared corpus has them."""
    write_tokenizer(folder, kind)
    write_dictionary(load(folder).symbols(), folder / "dict.txt", later=1)
    return folder
