"""What the preparations have in common on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...command_line import Parser, filled, not_negative, place, positive, share
from ...corpora.settings import Limits, TextSettings
from ...errors import UserError
from ...stages.pool import cores

_OF_SUBWORDS = {
    **dict.fromkeys(("--bpe-merges", "--bpe-words", "--dictionary"), "bpe"),
    **dict.fromkeys(("--spm-size", "--spm-sample", "--spm-coverage"), "spm"),
}

if TYPE_CHECKING:
    from ...corpora.download import Source
    from ...stages.engine import Preparation


def setting(
    add: Callable[..., object], flag: str, kind: Callable[[str], object], default: float, what: str
) -> None:
    """An option with a number, whose help ends in its default."""
    shown = f"{default:,}" if isinstance(default, int) else f"{default:g}"
    add(flag, type=kind, default=default, metavar="N", help=f"{what} (default {shown})")


def add_common(parser: Parser, out: str) -> None:
    """--out, --workers and --dry-run. ``out``: its default, as the help says it."""
    add = parser.add_argument
    add("--out", type=place, metavar="FOLDER", help=f"folder to make (default {out})")
    what = "processes; the result is the same for any number (default one for each core)"
    add("--workers", type=positive, default=cores(), metavar="N", help=what)
    add("--dry-run", action="store_true", help="list the stages, and do nothing")


def add_pair(parser: Parser, pairs: Sequence[str], what: str) -> None:
    """The pair of languages, en-de unless another is given."""
    parser.add_argument(
        "pair",
        nargs="?",
        default="en-de",
        choices=pairs,
        metavar="PAIR",
        help=f"{what} (default en-de)",
    )


def add_folder(parser: Parser, what: str, *, required: bool = False) -> None:
    """--from"""
    parser.add_argument(
        "--from", dest="folder", type=Path, metavar="FOLDER", required=required, help=what
    )


def add_source(parser: Parser, what: str) -> None:
    """--from, --manifest, --tries and --pause."""
    add_folder(parser, f"folder of the files, {what}: no network (default: they are downloaded)")
    add = parser.add_argument
    what = "addresses and checksums of other copies (as the package's corpora.yaml)"
    add("--manifest", type=Path, metavar="FILE", help=what)
    setting(add, "--tries", positive, 5, "times a download that breaks off is tried")
    pause = "seconds before the second try; then twice as long each time"
    setting(add, "--pause", not_negative, 5.0, pause)


def source_of(args: argparse.Namespace, corpus: str) -> Source:
    """The files of a corpus, by the options of ``add_source``."""
    from ...corpora.download import Source

    return Source(corpus, args.folder, args.manifest, args.tries, args.pause)


def add_text(
    parser: Parser, *, size: int = 6000, dictionary: int = -1, clean: bool = False
) -> None:
    """How text is split and cleaned. ``size``: BPE merges or SentencePiece pieces."""
    add = parser.add_argument_group("subwords").add_argument
    usual = TextSettings(("", ""))
    kinds = "bpe: byte-pair codes of Moses tokens; spm: SentencePiece on plain text (default bpe)"
    add("--subwords", choices=("bpe", "spm"), default="bpe", help=kinds)
    for flag, kind, default, what in (
        ("--bpe-merges", positive, size, "bpe: merges"),
        ("--bpe-words", positive, usual.bpe_words, "bpe: most frequent words to learn from"),
        ("--dictionary", int, dictionary, "bpe: entries of fairseq's at most; -1: all"),
        ("--spm-size", positive, size, "spm: pieces"),
        ("--spm-sample", positive, usual.spm_sample, "spm: sentences to learn from, at most"),
        ("--spm-coverage", share, usual.spm_coverage, "spm: characters that are pieces, 0 to 1"),
    ):
        setting(add, flag, kind, default, what)
    add = parser.add_argument_group("cleaning of the training pairs").add_argument
    broken = f"drop pairs that break one of these (default {'yes' if clean else 'no'})"
    add("--clean", action=argparse.BooleanOptionalAction, default=clean, help=broken)
    for name, what in (
        ("max_words", "words of a side"),
        ("max_chars", "characters of a side"),
        ("ratio", "longer side to shorter, in characters"),
        ("language_chars", "characters from which on a side is asked for its language"),
        ("certainty", "probability, 0 to 1, of another language; above 1: not asked"),
    ):
        default = getattr(Limits, name)
        kind = positive if isinstance(default, int) else not_negative
        setting(add, f"--{name.replace('_', '-')}", kind, default, what)


def text_of(args: argparse.Namespace, pair: str) -> TextSettings:
    """What the options of ``add_text`` say. Raises UserError for one of the other subwords."""
    for word in args.words:
        name = word.partition("=")[0]
        kind = _OF_SUBWORDS.get(name, args.subwords)
        if kind != args.subwords:
            raise UserError(f"{name}: of --subwords {kind}, not {args.subwords}; leave it out")
    source, _, target = pair.partition("-")
    langs = (source, target)
    given = argparse.Namespace(**{**vars(args), "pair": langs, "langs": langs})
    given.clean = filled(Limits, given) if args.clean else None
    return filled(TextSettings, given)


def out_of(args: argparse.Namespace, name: str) -> Path:
    """--out, or the usual folder of a corpus of this name."""
    suffix = "" if args.subwords == "bpe" else f".{args.subwords}"
    return args.out or Path("data") / f"{name}{suffix}"


def carry_out(preparation: Preparation, dry_run: bool) -> None:
    """Makes it; or only says what would be made, on standard output."""
    from ...stages.engine import plan, prepare

    if not dry_run:
        prepare(preparation)
        return
    for line in plan(preparation):
        print(line)
