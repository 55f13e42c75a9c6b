"""Questions and contexts as windows of subwords of a pretrained model.

    diet-mt prepare qa --train train-v1.1.json --valid dev-v1.1.json --vocab data/mlm.en/bin
    diet-mt prepare qa --train train-v1.1.json --valid dev-v1.1.json --xquad xquad --mlqa mlqa \\
        --tydiqa tydiqa --vocab data/mlm.multi/bin

Reads SQuAD's JSON, plain or .gz (rajpurkar.github.io/SQuAD-explorer), and folders of official test
files: xquad.de.json; test-context-de-question-de.json; TyDi QA's gold passage, a file for each
language (tydiqa.fi.dev.json, finnish.dev.json or tydiqa-goldp-dev-finnish.json). Makes train, valid
and test_COLLECTION_LANGUAGE; test sets can be added later. Takes a minute and 600 MB for SQuAD,
seconds for each test set. Licence: SQuAD, XQuAD: CC BY-SA 4.0; MLQA: CC BY-SA 3.0; TyDi QA:
Apache 2.0.

--max-tokens is Chen et al.'s (2021, table 7, multilingual); the other sizes are not printed there,
and so are those of BERT's published code.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ...bert.squad import NAMES
from ...command_line import Parser, positive
from .options import add_common, carry_out, setting


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("--train", type=Path, required=True, metavar="FILE", help="questions to train on")
    add("--valid", type=Path, required=True, metavar="FILE", help="questions to validate on")
    for name in NAMES:
        add(f"--{name}", type=Path, metavar="FOLDER", help="test sets; can be added later")
    what = "bin folder that diet-mt prepare mlm made"
    add("--vocab", type=Path, required=True, metavar="FOLDER", help=what)
    add_common(parser, "data/SQuAD")
    add("--language", default="en", metavar="CODE", help="of --train and --valid (default en)")
    for flag, default, what in (
        ("--max-tokens", 512, "subwords of a window, question and special ones included"),
        ("--stride", 128, "distance between the starts of two windows, in subwords"),
        ("--max-question", 64, "subwords of a question; what is longer is cut"),
    ):
        setting(add, flag, positive, default, what)


def run(args: argparse.Namespace) -> None:
    from ...bert.qa import preparation
    from ...bert.windows import WindowSizes

    folders = {name: getattr(args, name) for name in NAMES}
    what = preparation(
        args.out or Path("data/SQuAD"),
        args.train,
        args.valid,
        {name: folder for name, folder in folders.items() if folder},
        args.vocab,
        language=args.language,
        sizes=WindowSizes(args.max_tokens, args.stride, args.max_question),
    )
    carry_out(what, args.dry_run)
