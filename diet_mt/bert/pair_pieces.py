"""Labelled sentences as subwords, short enough for the model.

The model reads ``<s> A </s>`` or ``<s> A </s> </s> B </s>``. What is too long loses subwords at the
end of its longer sentence, one by one, as BERT's own preparation does it (Devlin et al. 2018): both
sentences keep their marks and their border, which cutting the finished sequence would not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path

from ..corpora.dictionary import UNKNOWN
from ..errors import UserError
from ..files import decoded_lines, make_folder, writing
from ..stages.pool import in_order
from ..stages.progress import say, ticking
from .labelled import splits_of
from .tokenizer import load
from .vocabulary import say_unknown

# Marks that a sentence of the input has: the first has two, and so has the second.
MARKS = 2
SHORTEST = 2 * (MARKS + 1)  # tokens: room for a subword of each sentence


def shortened(sentences: Sequence[Sequence[str]], max_length: int) -> list[list[str]]:
    """Subwords of one or two sentences, cut so that all with their marks are at most max_length.

    While they are too long, the longer sentence loses its last subword; of two equally long ones
    the second does.
    """
    room = max_length - MARKS * len(sentences)
    if len(sentences) == 1:
        return [list(sentences[0][:room])]
    first, second = sentences
    half, rest = room // 2, room - room // 2
    if len(first) + len(second) > room:
        if len(second) <= half:
            first = first[: room - len(second)]
        elif len(first) <= rest:
            second = second[: room - len(first)]
        else:
            first, second = first[:rest], second[:half]
    return [list(first), list(second)]


def split_examples(
    lines: list[tuple[str, ...]], tokenizer: Path, max_length: int
) -> list[tuple[bool, tuple[str, ...]]]:
    """Examples -> for each, whether it was cut, and the subwords of its sentences, by spaces.
    Raises UserError where a subword holds white space, at which fairseq would split it.
    """
    split = load(tokenizer).pieces
    found = []
    for sentences in lines:
        pieces = [split(sentence) for sentence in sentences]
        cut = shortened(pieces, max_length)
        texts = tuple(" ".join(each) for each in cut)
        for each, text in zip(cut, texts, strict=True):
            if len(text.split()) != len(each):
                raise UserError(f"{tokenizer}: a subword of '{text[:60]}' holds white space")
        found.append((cut != pieces, texts))
    return found


def split_folder(raw: Path, out: Path, tokenizer: Path, max_length: int, workers: int) -> None:
    """Writes ``out/SPLIT.input0`` and ``input1`` for each split that ``out`` does not have yet.

    Raises UserError as the readers.
    """
    make_folder(out)
    function = partial(split_examples, tokenizer=tokenizer, max_length=max_length)
    for split in splits_of(raw):
        inputs = sorted(raw.glob(f"{split}.input?"))
        if all((out / path.name).exists() for path in inputs):
            say(f"{split}: done before")
            continue
        lines = zip(*map(_sentences, inputs), strict=True)
        examples = ticking(chain.from_iterable(in_order(function, lines, workers)), split)
        cut = subwords = unknown = 0
        with ExitStack() as stack:
            files = [stack.enter_context(writing(out / path.name)) for path in inputs]
            for was_cut, texts in examples:
                cut += was_cut
                for file, text in zip(files, texts, strict=True):
                    words = text.split(" ")
                    subwords += len(words)
                    unknown += words.count(UNKNOWN)
                    file.write(text + "\n")
        say(f"{split}: {cut:,} examples were longer than {max_length} subwords and cut")
        say_unknown(split, unknown, subwords)


def _sentences(path: Path) -> Iterator[str]:
    return (line for _, line in decoded_lines(path))
