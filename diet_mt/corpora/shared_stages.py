"""The stages that all parallel corpora share: from raw text to the folder that fairseq-train reads.

raw -> [clean] -> tok -> bpe.codes -> bpe -> bin        byte-pair codes
raw -> [clean] -> spm.model -> spm -> bin               SentencePiece
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ..stages.engine import Count, Preparation, Stage, lines_in, room_for
from ..stages.watch import apart
from . import bpe, clean, language, moses, pieces
from .binarized import sentences_in
from .dictionary import write_dictionary
from .parallel import convert, splits_in
from .preprocess import need_fairseq, preprocess, shares, shown
from .settings import TextSettings
from .subwords import MODELS, split_file


def prepared(out: Path, first: list[Stage], text: TextSettings, more: str = "") -> Preparation:
    """A corpus of which the stages ``first`` make ``raw``; ``more``: settings of theirs.

    Raises:
        UserError: what the stages need is not installed.
    """
    need_fairseq(out)
    if text.clean is not None and text.clean.certainty <= 1:
        language.need_identifier()
    return Preparation(
        out,
        f"{text.words()} {more}".strip(),
        [*first, *shared_stages(out, text)],
        partial(counts, out, text),
        text=f"train.{text.pair[0]}",
        result="bin",
    )


def shared_stages(out: Path, text: TextSettings) -> list[Stage]:
    """All stages after ``raw``."""
    raw, plain = out / "raw", _plain(out, text)
    found = []
    if text.clean is not None:
        does = f"training pairs of raw that keep to the limits; counts in {out}/clean.tsv"
        room = partial(room_for, 105, raw)
        found.append(Stage("clean", does, partial(_clean, out, text), room))
    if text.subwords == "bpe":
        tok, codes = out / "tok", out / "bpe.codes"
        split = partial(moses.tokenize_file, workers=text.workers)
        make = partial(convert, plain, langs=text.pair, one=split)
        found += [
            Stage("tok", f"Moses tokens of {plain.name}", make, partial(room_for, 120, plain)),
            Stage("bpe.codes", f"{text.bpe_merges} merges", partial(_learn_bpe, tok, text)),
        ]
        source, model = tok, codes
    else:
        found.append(
            Stage("spm.model", f"{text.spm_size} pieces", partial(_learn_spm, plain, text))
        )
        source, model = plain, out / "spm.model"
    made = out / text.subwords
    return [
        *found,
        Stage(
            made.name,
            f"{source.name} in subwords",
            partial(_split, source, model, text),
            partial(room_for, 130, source),
        ),
        Stage(
            "bin",
            shown([*_options(out, text), "--destdir", out / "bin"]),
            partial(_binarize, out, text),
            partial(room_for, 100, made),
            restarts=True,  # fairseq cannot continue
        ),
    ]


def counts(out: Path, text: TextSettings) -> Iterator[Count]:
    """Sentences of every file of ``bin``, beside the lines that it was made of."""
    plain, pair = _plain(out, text), "-".join(text.pair)
    for split in splits_in(plain, text.pair[0]):
        for lang in text.pair:
            found = sentences_in(out / "bin" / f"{split}.{pair}.{lang}.idx")
            yield f"{split}.{lang}", found, lines_in(plain / f"{split}.{lang}")


def _plain(out: Path, text: TextSettings) -> Path:
    return out / ("raw" if text.clean is None else "clean")


def _clean(out: Path, text: TextSettings, to: Path) -> None:
    assert text.clean is not None
    clean.clean_corpus(out / "raw", to, text.clean, out / "clean.tsv", text.workers)


def _learn_bpe(tok: Path, text: TextSettings, to: Path) -> None:
    files = [tok / f"train.{lang}" for lang in text.pair]
    bpe.learn(files, to, text.bpe_merges, workers=text.workers, max_words=text.bpe_words)


def _learn_spm(plain: Path, text: TextSettings, to: Path) -> None:
    files = [plain / f"train.{lang}" for lang in text.pair]
    learn = partial(pieces.learn, sample=text.spm_sample, coverage=text.spm_coverage)
    apart("SentencePiece", learn, files, to, text.spm_size, grows=to)


def _split(source: Path, model: Path, text: TextSettings, to: Path) -> None:
    def one(file: Path, new: Path, lang: str) -> None:
        split_file(text.subwords, model, file, new, text.workers)

    convert(source, to, text.pair, one)


def _options(out: Path, text: TextSettings) -> list[object]:
    source, target = text.pair
    made = out / text.subwords
    second = f",{made}/test1" if (made / f"test1.{source}").exists() else ""
    if text.subwords == "bpe":
        dictionary = ["--nwordssrc", text.dictionary, "--nwordstgt", text.dictionary]
    else:
        dictionary = ["--srcdict", out / "spm.dict"]
    return [
        *("--source-lang", source, "--target-lang", target, "--joined-dictionary", *dictionary),
        *("--workers", shares(text.workers), "--trainpref", made / "train"),
        *("--validpref", made / "valid", "--testpref", f"{made}/test{second}"),
    ]


def _binarize(out: Path, text: TextSettings, to: Path) -> None:
    model = out / MODELS[text.subwords]
    if text.subwords == "spm":
        write_dictionary(pieces.symbols(model), out / "spm.dict")
    to.mkdir()
    preprocess(_options(out, text), to, out / "preprocess.log")
    # Beside the data, to say how output becomes text again.
    shutil.copyfile(model, to / model.name)
