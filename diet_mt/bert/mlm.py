"""Plain text -> the corpus of a masked language model.

    sentences -> sample -> wordpiece.json or spm.model -> pieces -> bin

``bin`` holds the tokenizer, too, and is the vocabulary of what is fine-tuned later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from ..corpora import pieces
from ..corpora.binarized import need_fairseq, preprocess, sentences_in, shares, shown
from ..errors import UserError
from ..files import copy, lines_in, write_lines
from ..stages.engine import Count, Preparation, Stage, room_for
from ..stages.watch import apart
from . import wordpiece
from .documents import inputs, need_text
from .mlm_settings import MlmSettings
from .mlm_text import SHORTEST, SPLITS, prepare_sentences, write_pieces, write_sample
from .tokenizer import SENTENCEPIECE, WORDPIECE, load_file, write_dictionary_of


def preparation(
    out: Path, train: Sequence[str], valid: Sequence[str], given: MlmSettings
) -> Preparation:
    """``train``, ``valid``: [LANGUAGE:]FILE, patterns too. Raises UserError where a file is not
    there, holds no text, or is both to train and to validate on; a setting is too small.
    """
    need_fairseq(out)
    if given.max_length < SHORTEST:
        raise UserError(f"--max-length {given.max_length}: must be at least {SHORTEST}")
    text = {"train": inputs(train, given.language), "valid": inputs(valid, given.language)}
    _refuse_same(text)
    sentences, sample, ids = out / "sentences", out / "sample", out / "pieces"
    if not sentences.exists():
        for part, by_language in text.items():
            for language, files in by_language.items():
                need_text(files, f"{part}.{language}", whole=part == "valid")  # which is short
    tokenizer = out / (WORDPIECE if given.subwords == "wordpiece" else SENTENCEPIECE)

    def learn(to: Path) -> None:
        if given.subwords == "wordpiece":
            some = partial(wordpiece.learn, cased=given.cased)
            apart("WordPiece", some, [sample], to, given.vocab_size, grows=to)
        else:
            some = partial(pieces.learn, sample=given.vocab_sample, coverage=given.spm_coverage)
            # Two of fairseq's marks, <pad> and <mask>, are not the model's own.
            apart("SentencePiece", some, [sample], to, given.vocab_size - 2, grows=to)

    def split(to: Path) -> None:
        write_pieces(sentences, to, tokenizer, given.max_length, given.alpha, given.workers)

    options = [
        *("--only-source", "--srcdict", out / "dict.txt", "--workers", shares(given.workers)),
        *("--trainpref", ids / "train", "--validpref", ids / "valid"),
    ]

    def binarize(to: Path) -> None:
        write_dictionary_of(load_file(tokenizer), out / "dict.txt")
        preprocess(options, to, out / "preprocess.log")
        copy(tokenizer, to / tokenizer.name)
        write_lines(to / "max-length", [str(given.max_length)])

    def counts() -> Iterator[Count]:
        for name in SPLITS:
            yield name, sentences_in(out / "bin" / f"{name}.idx"), lines_in(ids / name)

    stages = [
        Stage(
            "sentences",
            "a sentence on each line, documents apart",
            partial(prepare_sentences, text, workers=given.workers),
        ),
        Stage(
            "sample",
            f"at most {given.vocab_sample} of them",
            partial(write_sample, sentences, size=given.vocab_sample, alpha=given.alpha),
        ),
        Stage(
            tokenizer.name,
            f"a vocabulary of {given.vocab_size}",
            learn,
            settings=given.of_vocabulary(),
        ),
        Stage("pieces", "all sentences in pieces", split, partial(room_for, 150, sentences)),
        Stage(
            "bin",
            shown(options, out / "bin"),
            binarize,
            partial(room_for, 100, ids),
            restarts=True,  # fairseq cannot continue
        ),
    ]
    words = f"TRAIN='{' '.join(train)}' VALID='{' '.join(valid)}' {given.words()}"
    first = next(iter(text["train"]))
    return Preparation(out, words, stages, counts, text=f"train.{first}", result="bin")


def _refuse_same(text: dict[str, dict[str, list[Path]]]) -> None:
    files = {
        split: {file.resolve(): file for some in by_language.values() for file in some}
        for split, by_language in text.items()
    }
    both = files["train"].keys() & files["valid"].keys()
    if both:
        raise UserError(f"{files['valid'][min(both)]}: in --train and in --valid; give others")
