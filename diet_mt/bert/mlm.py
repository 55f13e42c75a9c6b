"""Stages from plain text to the corpus of a masked language model.

    sentences -> sample -> wordpiece.json or spm.model -> pieces -> bin

``bin`` also contains the tokenizer, for ``--vocab`` of fine-tuning data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from ..corpora import pieces
from ..corpora.binarized import need_fairseq, preprocess, sentences_in, shares, shown
from ..system.engine import Count, Preparation, Stage
from ..system.errors import UserError
from ..system.files import copy, lines_in, write_lines
from ..system.process import apart
from . import mlm_text
from . import tokenizer as tokenizers
from .settings import MlmSettings


def preparation(
    out: Path, train: Sequence[str], valid: Sequence[str], given: MlmSettings
) -> Preparation:
    """``train``, ``valid``: [LANGUAGE:]FILE or patterns, without files in common."""
    need_fairseq(out)
    if given.max_length < mlm_text.SHORTEST:
        raise UserError(f"--max-length {given.max_length}: must be at least {mlm_text.SHORTEST}")
    text = {
        split: mlm_text.inputs(words, given.language)
        for split, words in (("train", train), ("valid", valid))
    }
    _refuse_same(text)
    sentences, sample, ids = out / "sentences", out / "sample", out / "pieces"
    if not sentences.exists():
        for part, by_language in text.items():
            for language, files in by_language.items():
                # Only validation texts are short enough to be read completely.
                mlm_text.need_text(files, f"{part}.{language}", whole=part == "valid")
    is_wordpiece = given.subwords == "wordpiece"
    tokenizer = out / (tokenizers.WORDPIECE if is_wordpiece else tokenizers.SENTENCEPIECE)

    def learn(to: Path) -> None:
        if is_wordpiece:
            trainer = partial(tokenizers.learn_wordpiece, cased=given.cased)
            apart("WordPiece", trainer, [sample], to, given.vocab_size, grows=to)
        else:
            trainer = partial(pieces.learn, sample=given.vocab_sample, coverage=given.spm_coverage)
            # Two of fairseq's special symbols, <pad> and <mask>, are not in the model.
            apart("SentencePiece", trainer, [sample], to, given.vocab_size - 2, grows=to)

    def split(to: Path) -> None:
        length, alpha = given.max_length, given.alpha
        mlm_text.write_pieces(sentences, to, tokenizer, length, alpha, given.workers)

    options = [
        *("--only-source", "--srcdict", out / "dict.txt", "--workers", shares(given.workers)),
        *("--trainpref", ids / "train", "--validpref", ids / "valid"),
    ]

    def binarize(to: Path) -> None:
        tokenizers.write_dictionary_of(tokenizers.load_file(tokenizer), out / "dict.txt")
        preprocess(options, to, out / "preprocess.log")
        copy(tokenizer, to / tokenizer.name)
        write_lines(to / "max-length", [str(given.max_length)])

    def counts() -> Iterator[Count]:
        for name in mlm_text.SPLITS:
            yield name, sentences_in(out / "bin" / f"{name}.idx"), lines_in(ids / name)

    size, alpha = given.vocab_sample, given.alpha
    make_text = partial(mlm_text.prepare_sentences, text, workers=given.workers)
    make_sample = partial(mlm_text.write_sample, sentences, size=size, alpha=alpha)
    vocabulary, own = f"vocabulary of {given.vocab_size}", given.of_vocabulary()
    stages = [
        Stage("sentences", "one sentence per line, empty lines between documents", make_text),
        Stage("sample", f"at most {size} sentences", make_sample),
        Stage(tokenizer.name, vocabulary, learn, settings=own),
        Stage("pieces", "all sentences in pieces", split, settings=own),
        # fairseq cannot resume.
        Stage("bin", shown(options, out / "bin"), binarize, settings=own, restarts=True),
    ]
    words = f"TRAIN='{' '.join(train)}' VALID='{' '.join(valid)}' {given.words()}"
    first = next(iter(text["train"]))
    return Preparation(out, words, stages, counts, text=f"train.{first}", result="bin")


def _refuse_same(text: dict[str, dict[str, list[Path]]]) -> None:
    files = {
        split: {path.resolve(): path for paths in by_language.values() for path in paths}
        for split, by_language in text.items()
    }
    if common := files["train"].keys() & files["valid"].keys():
        raise UserError(f"{files['valid'][min(common)]}: in --train and in --valid; give others")
