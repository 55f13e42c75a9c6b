"""Cuts questions into windows for the model; called by ``data-prep/prepare-qa.sh``.

    python -m diet_mt.bert.questions.prepare --vocab VOCAB --out OUT/valid dev-v1.1.json

VOCAB: folder with ``dict.txt`` and the tokenizer that the model was pretrained with. The folder
that is made is described in ``features.py``.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

from ...command_line import run
from ...errors import UserError
from ...files import make_folder
from .. import tokenizer as tokenizers
from ..vocabulary import read_numbers, say_unknown
from .features import UNKNOWN, About, make_features, read_about, write_features
from .normalise import LANGUAGES
from .squad import raw_bytes, read_squad
from .windows import WindowSizes

SCORINGS = ("squad", "mlqa")
_LEAST = WindowSizes()


def prepare(
    file: Path,
    vocab: Path,
    out: Path,
    sizes: WindowSizes,
    *,
    language: str = "",
    scoring: str = "squad",
    need_answers: bool = False,
) -> About:
    """Makes the folder ``out`` of a file of questions.

    Raises:
        UserError: as ``read_squad``, ``tokenizer.load`` and ``read_numbers``; the language has no
            scoring of this kind; a question to train on has no answer.
    """
    if scoring == "mlqa" and language not in LANGUAGES:
        raise UserError(
            f"{file}: language '{language}': MLQA's scores are defined for {', '.join(LANGUAGES)}"
        )
    questions = read_squad(file)
    without = next((each for each in questions if not each.has_gold), None)
    if need_answers and without is not None:
        raise UserError(f"{file}, question {without.id}: no answers, so it cannot be trained on")
    numbers = read_numbers(vocab / "dict.txt")
    features, lost = make_features(questions, tokenizers.load(vocab), numbers, sizes)
    squad = raw_bytes(file)
    about = About(
        name=file.name,
        sha256=hashlib.sha256(squad).hexdigest(),
        language=language,
        scoring=scoring,
        max_tokens=sizes.max_tokens,
        stride=sizes.stride,
        max_question=sizes.max_question,
        questions=len(questions),
        windows=len(features),
        with_answer=int((features.column("end") > 0).sum()),
        lost=lost,
        unknown=int((features.tokens == UNKNOWN).sum()),
    )
    say_unknown(file.name, about.unknown, len(features.tokens))
    make_folder(out)
    write_features(out, features, squad, about)
    return about


def check_source(out: Path, file: Path) -> None:
    """Raises UserError where the folder ``out`` was made of something else than is in ``file``."""
    if read_about(out).sha256 != hashlib.sha256(raw_bytes(file)).hexdigest():
        raise UserError(
            f"{out}: was not made of what is in {file}; remove it to make it anew, or set OUT to "
            "another folder"
        )


def add_sizes(parser: argparse.ArgumentParser) -> None:
    """The options that say how contexts are cut."""
    for name, text in (
        ("max_tokens", "of a window, with its question and special tokens"),
        ("stride", "pieces from the begin of a window to that of the next"),
        ("max_question", "pieces of a question at most; what is longer is cut"),
    ):
        default = getattr(_LEAST, name)
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=int, default=default, help=f"{text} (default {default})")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="diet_mt.bert.questions.prepare", description="cut into windows"
    )
    parser.add_argument("file", type=Path, help="SQuAD's JSON, plain or gzipped")
    parser.add_argument("--vocab", type=Path, required=True, help="dict.txt and the tokenizer")
    parser.add_argument("--out", type=Path, required=True, help="folder to make")
    parser.add_argument("--language", default="", help="of the questions: en, de, ...")
    parser.add_argument("--scoring", choices=SCORINGS, default="squad", help="default squad")
    parser.add_argument("--train", action="store_true", help="every question needs an answer")
    parser.add_argument("--check", action="store_true", help="only look if OUT is of this file")
    add_sizes(parser)
    args = parser.parse_args(argv)

    def body() -> None:
        if args.check:
            check_source(args.out, args.file)
            return
        sizes = WindowSizes(args.max_tokens, args.stride, args.max_question)
        about = prepare(
            args.file,
            args.vocab,
            args.out,
            sizes,
            language=args.language,
            scoring=args.scoring,
            need_answers=args.train,
        )
        lost = f", {about.lost} answers longer than what windows share" if about.lost else ""
        print(
            f"   {about.name}: {about.questions} questions, {about.windows} windows, "
            f"{about.with_answer} with the answer{lost}",
            file=sys.stderr,
        )

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
