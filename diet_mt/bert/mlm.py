"""Plain text -> the corpus of a masked language model.

    sentences -> sample -> wordpiece.json or spm.model -> pieces -> bin

``bin`` holds the tokenizer, too, and is the vocabulary of what is fine-tuned later.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..corpora import pieces
from ..corpora.binarized import sentences_in
from ..corpora.preprocess import need_fairseq, preprocess, shares, shown
from ..errors import UserError
from ..files import write_lines
from ..stages.engine import Count, Preparation, Stage, lines_in, room_for
from ..stages.watch import apart
from . import wordpiece
from .documents import inputs
from .mlm_settings import MlmSettings
from .mlm_text import SHORTEST, SPLITS, prepare_sentences, write_pieces, write_sample
from .tokenizer import SENTENCEPIECE, WORDPIECE, load_file, write_dictionary_of


@dataclass(frozen=True)
class _Folder:
    """What the stages make of ``text``: files of each split, by language."""

    out: Path
    text: dict[str, dict[str, list[Path]]]
    given: MlmSettings

    @property
    def tokenizer(self) -> Path:
        return self.out / (WORDPIECE if self.given.subwords == "wordpiece" else SENTENCEPIECE)

    def sentences(self, to: Path) -> None:
        prepare_sentences(self.text, to, self.given.workers)

    def sample(self, to: Path) -> None:
        write_sample(self.out / "sentences", to, self.given.vocab_sample, self.given.alpha)

    def learn(self, to: Path) -> None:
        given, sample = self.given, self.out / "sample"
        if given.subwords == "wordpiece":
            learn = partial(wordpiece.learn, cased=given.cased)
            apart("WordPiece", learn, [sample], to, given.vocab_size, grows=to)
        else:
            learn = partial(pieces.learn, sample=given.vocab_sample, coverage=given.spm_coverage)
            # Two of fairseq's marks, <pad> and <mask>, are not the model's own.
            size = given.vocab_size - 2
            apart("SentencePiece", learn, [sample], to, size, grows=to)

    def pieces(self, to: Path) -> None:
        given = self.given
        write_pieces(
            self.out / "sentences", to, self.tokenizer, given.max_length, given.alpha, given.workers
        )

    @property
    def options(self) -> list[object]:
        text = self.out / "pieces"
        return [
            *("--only-source", "--srcdict", self.out / "dict.txt"),
            *("--workers", shares(self.given.workers)),
            *("--trainpref", text / "train", "--validpref", text / "valid"),
        ]

    def binarize(self, to: Path) -> None:
        write_dictionary_of(load_file(self.tokenizer), self.out / "dict.txt")
        to.mkdir()
        preprocess(self.options, to, self.out / "preprocess.log")
        shutil.copyfile(self.tokenizer, to / self.tokenizer.name)
        write_lines(to / "max-length", [str(self.given.max_length)])

    def counts(self) -> Iterator[Count]:
        for split in SPLITS:
            found = sentences_in(self.out / "bin" / f"{split}.idx")
            yield split, found, lines_in(self.out / "pieces" / split)


def preparation(
    out: Path, train: Sequence[str], valid: Sequence[str], given: MlmSettings
) -> Preparation:
    """``train``, ``valid``: [LANGUAGE:]FILE, patterns too.

    Raises:
        UserError: a file is not there, or both to train and to validate on; a setting is too small.
    """
    need_fairseq(out)
    if given.max_length < SHORTEST:
        raise UserError(f"--max-length {given.max_length}: must be at least {SHORTEST}")
    text = {"train": inputs(train, given.language), "valid": inputs(valid, given.language)}
    _refuse_same(text)
    folder = _Folder(out, text, given)
    sentences, ids = out / "sentences", out / "pieces"
    size = f"a vocabulary of {given.vocab_size}"
    stages = [
        Stage("sentences", "a sentence on each line, documents apart", folder.sentences),
        Stage("sample", f"at most {given.vocab_sample} of them", folder.sample),
        Stage(folder.tokenizer.name, size, folder.learn, settings=given.of_vocabulary()),
        Stage(
            "pieces", "all sentences in pieces", folder.pieces, partial(room_for, 150, sentences)
        ),
        Stage(
            "bin",
            shown([*folder.options, "--destdir", out / "bin"]),
            folder.binarize,
            partial(room_for, 100, ids),
            restarts=True,  # fairseq cannot continue
        ),
    ]
    words = f"TRAIN='{' '.join(train)}' VALID='{' '.join(valid)}' {given.words()}"
    first = next(iter(text["train"]))
    return Preparation(out, words, stages, folder.counts, text=f"train.{first}", result="bin")


def _refuse_same(text: dict[str, dict[str, list[Path]]]) -> None:
    files = {
        split: {file.resolve(): file for some in by_language.values() for file in some}
        for split, by_language in text.items()
    }
    both = files["train"].keys() & files["valid"].keys()
    if both:
        raise UserError(f"{files['valid'][min(both)]}: in --train and in --valid; give others")
