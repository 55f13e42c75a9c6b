"""Plain text as the corpus of a masked language model, for diet-mt pretrain.

    diet-mt prepare mlm --train wiki.txt.gz books/*.gz --valid held-out.txt --out data/mlm.en
    diet-mt prepare mlm --setting multilingual --train de:de.gz cs:cs.gz --valid de:de.v cs:cs.v

Text: plain or .gz, a paragraph on a line, an empty line between documents. Files are known by their
names: after a change inside of one, remove the folder. Makes sentences, sample, wordpiece.json or
spm.model, pieces, and bin, what fairseq-train reads and what glue, xnli and qa take as --vocab.
The paper does not say whether its English model was cased.

1.5 million words take 20 s of processor time and 35 MB; the 3,300 million of English Wikipedia and
books an estimated 12 hours of one core, or one of sixteen, and 70 GB. Licence: that of the text.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ...bert.mlm_settings import USUAL, MlmSettings
from ...command_line import Parser, filled, positive, share
from .options import add_common, carry_out, setting


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    usual = MlmSettings("", 0, 0)
    for name, what in (("--train", "train on; patterns, too"), ("--valid", "validate on")):
        add(name, nargs="+", required=True, metavar="[LANGUAGE:]FILE", help=f"text to {what}")
    add_common(parser, "data/mlm")
    what = (
        "english: WordPiece of 30,000, sequences of 128; multilingual: SentencePiece of 120,000, "
        "sequences of 512, as in Chen et al. 2021 (default english)"
    )
    add("--setting", choices=tuple(USUAL), default="english", help=what)
    add("--subwords", choices=("wordpiece", "spm"), help="default: that of --setting")
    for flag, what in (
        ("--vocab-size", "entries, fairseq's five marks included"),
        ("--max-length", "pieces of a sequence, <s> and </s> included"),
    ):
        add(flag, type=positive, metavar="N", help=f"{what} (default: that of --setting)")
    what = "of files given without one; it decides where sentences end (default en)"
    add("--language", default=usual.language, metavar="CODE", help=what)
    add("--cased", action="store_true", help="WordPiece: keep capital letters and accents")
    for flag, kind, default, what in (
        ("--vocab-sample", positive, usual.vocab_sample, "sentences to learn pieces from, at most"),
        ("--spm-coverage", share, usual.spm_coverage, "spm: characters that are pieces, 0 to 1"),
        ("--alpha", share, usual.alpha, "a language's share to this power, 0 to 1; 1: text once"),
    ):
        setting(add, flag, kind, default, what)


def run(args: argparse.Namespace) -> None:
    from ...bert.mlm import preparation

    names = ("subwords", "vocab_size", "max_length")
    for name, usual in zip(names, USUAL[args.setting], strict=True):
        setattr(args, name, getattr(args, name) or usual)
    given, out = filled(MlmSettings, args), args.out or Path("data/mlm")
    carry_out(preparation(out, args.train, args.valid, given), args.dry_run)
