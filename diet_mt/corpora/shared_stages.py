"""Stages shared by all parallel corpora: from raw text to the folder for fairseq-train.

raw -> [clean] -> tok -> bpe.codes -> bpe -> bin        byte-pair codes
raw -> [clean] -> spm.model -> spm -> bin               SentencePiece
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ..system.engine import Count, Preparation, Stage
from ..system.files import copy, lines_in
from ..system.process import apart
from . import clean, pieces, subwords
from .binarized import count_in, need_fairseq, parts, preprocess, shown, write_dictionary
from .parallel import convert, splits_in
from .settings import MODELS, TextSettings


def prepared(out: Path, first: list[Stage], text: TextSettings, more: str = "") -> Preparation:
    """The preparation of a corpus; ``first``: stages that make ``raw``, with settings ``more``."""
    need_fairseq(out)
    limits, langs, workers = text.clean, text.pair, text.workers
    stages, source = list(first), out / "raw"
    if limits is not None:
        if limits.certainty <= 1 and not (out / "clean").exists():
            clean.need_known(langs)
        counted = out / clean.COUNTS
        does = f"pairs within the limits, sources of valid and test mended; see {counted}"
        make = partial(clean.clean_corpus, source, limits=limits, counts=counted, workers=workers)
        stages.append(Stage("clean", does, make))
        source = out / "clean"
    plain, what = source, f"{text.spm_size} pieces"
    if text.subwords == "bpe":
        one = partial(subwords.tokenize_file, workers=workers)
        make = partial(convert, plain, langs=langs, one=one)
        does = f"Moses tokens of {plain.name}"
        stages.append(Stage("tok", does, make))
        source, what = out / "tok", f"{text.bpe_merges} merges"
    model, made = out / MODELS[text.subwords], out / text.subwords

    def split(to: Path) -> None:
        def one(file: Path, new: Path, lang: str) -> None:
            subwords.split_file(text.subwords, model, file, new, workers)

        convert(source, to, langs, one)

    def counts() -> Iterator[Count]:
        """Name, sentences and lines of text of every file in ``bin``."""
        for part in splits_in(plain, langs[0]):
            for lang in langs:
                index = out / "bin" / f"{part}.{'-'.join(langs)}.{lang}.idx"
                name = f"{part}.{lang}"
                yield name, count_in(index), lines_in(plain / name)

    command, binarize = shown(_options(out, text), out / "bin"), partial(_binarize, out, text)
    stages += [
        Stage(model.name, what, partial(_learn, text, source)),
        Stage(made.name, f"{source.name} in subwords", split),
        # fairseq cannot resume.
        Stage("bin", command, binarize, restarts=True),
    ]
    settings = f"{text.words()} {more}".strip()
    return Preparation(out, settings, stages, counts, text=f"train.{langs[0]}", result="bin")


def _learn(text: TextSettings, source: Path, to: Path) -> None:
    files = [source / f"train.{lang}" for lang in text.pair]
    if text.subwords == "bpe":
        words = text.bpe_words
        subwords.learn_bpe(files, to, text.bpe_merges, workers=text.workers, max_words=words)
    else:
        learn = partial(pieces.learn, sample=text.spm_sample, coverage=text.spm_coverage)
        apart("SentencePiece", learn, files, to, text.spm_size, grows=to)


def _options(out: Path, text: TextSettings) -> list[object]:
    source, target = text.pair
    made = out / text.subwords
    second = f",{made}/test1" if (made / f"test1.{source}").exists() else ""
    dictionary: list[object] = ["--srcdict", out / "spm.dict"]
    if text.subwords == "bpe":
        dictionary = ["--nwordssrc", text.dictionary, "--nwordstgt", text.dictionary]
    return [
        *("--source-lang", source, "--target-lang", target, "--joined-dictionary", *dictionary),
        *("--workers", parts(text.workers), "--trainpref", made / "train"),
        *("--validpref", made / "valid", "--testpref", f"{made}/test{second}"),
    ]


def _binarize(out: Path, text: TextSettings, to: Path) -> None:
    model = out / MODELS[text.subwords]
    if text.subwords == "spm":
        write_dictionary(pieces.symbols(model), out / "spm.dict")
    preprocess(_options(out, text), to, out / "preprocess.log")
    copy(model, to / model.name)  # for joining the subwords of model output
