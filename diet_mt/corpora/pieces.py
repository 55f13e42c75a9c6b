"""SentencePiece: a joint unigram model of both languages, learned from untokenized text.

Kudo (2018), "Subword Regularization", arXiv:1804.10959; Kudo and Richardson (2018),
"SentencePiece", arXiv:1808.06226. A piece at the start of a word begins with U+2581. Only white
space is normalized: every run becomes one space; all other characters round-trip.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import sentencepiece

from ..system.errors import UserError
from ..system.files import writing_bytes
from ..system.progress import ticking
from .parallel import read_lines
from .settings import SPM_COVERAGE, SPM_SAMPLE

SPACE = "\u2581"  # begins a word
# Fixed for reproducibility: the learned pieces depend on the number of threads.
_THREADS = 16
_SEED = 1


def learn(
    files: Iterable[Path],
    out: Path,
    size: int,
    *,
    sample: int = SPM_SAMPLE,
    coverage: float = SPM_COVERAGE,
) -> None:
    """Learns ``size`` pieces from at most ``sample`` sentences of all files together.

    ``coverage``: share of the text's characters, 0 to 1. Raises UserError for an invalid ``size``.
    """
    sentencepiece.set_random_generator_seed(_SEED)
    with writing_bytes(out) as model:
        try:
            # Not by file names, which would be stored in the model.
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_sentences(files),
                model_writer=model,
                model_type="unigram",
                vocab_size=size,
                normalization_rule_name="identity",
                character_coverage=coverage,
                input_sentence_size=sample,
                shuffle_input_sentence=True,
                train_extremely_large_corpus=False,
                num_threads=_THREADS,
                minloglevel=2,
            )
        except RuntimeError as error:
            # Drops SentencePiece's source file and line.
            reason = re.sub(r".*\] ", "", str(error), flags=re.DOTALL)
            raise UserError(f"{size} pieces (--spm-size or --vocab-size): {reason}") from None


def _sentences(files: Iterable[Path]) -> Iterator[str]:
    for file in files:
        yield from ticking(map(_plain, read_lines(file)), f"{file.name} read")


def _plain(line: str) -> str:
    # fairseq splits at all white space, so pieces must not contain any.
    return " ".join(line.split())


@cache
def load(model: Path) -> sentencepiece.SentencePieceProcessor:
    """The encoder of a model file."""
    return sentencepiece.SentencePieceProcessor(model_file=str(model))


def split(lines: list[str], model: Path) -> list[str]:
    """Lines split into pieces that are separated by spaces."""
    plain = [_plain(line) for line in lines]
    return [" ".join(pieces) for pieces in load(model).encode(plain, out_type=str, num_threads=1)]


def join(tokens: str) -> str:
    """The inverse of ``split``: ``"▁see ing ▁it"`` becomes ``"seeing it"``."""
    return "".join(tokens.split()).replace(SPACE, " ").strip()


def symbols(model: Path) -> list[str]:
    """The pieces of a model in its order, without special symbols."""
    processor = load(model)
    special = {processor.unk_id(), processor.bos_id(), processor.eos_id(), processor.pad_id()}
    numbers = (number for number in range(processor.get_piece_size()) if number not in special)
    return [processor.id_to_piece(number) for number in numbers]
