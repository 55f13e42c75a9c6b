"""What the preparations have in common on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from ...command_line import Parser
from ...corpora.settings import Limits, TextSettings
from ...stages.pool import cores

if TYPE_CHECKING:
    from ...corpora.fetch import Origin
    from ...stages.engine import Preparation


def positive(text: str) -> int:
    """1, 2, 3 and so on."""
    return int(_number(text, int, lambda number: number >= 1, "a positive number"))


def share(text: str) -> float:
    """From 0 to 1."""
    return _number(text, float, lambda number: 0 <= number <= 1, "from 0 to 1")


def not_negative(text: str) -> float:
    """0 or more."""
    return _number(text, float, lambda number: 0 <= number < float("inf"), "0 or more")


def _number(
    text: str, kind: Callable[[str], float], fits: Callable[[float], bool], what: str
) -> float:
    try:
        number = kind(text)
    except ValueError:
        number = float("nan")
    if not fits(number):
        raise argparse.ArgumentTypeError(f"must be {what}, got '{text}'")
    return number


def add_common(parser: Parser, out: str) -> None:
    """--out, --workers and --dry-run. ``out``: its default, as the help says it."""
    add = parser.add_argument
    add("--out", type=Path, metavar="FOLDER", help=f"folder to make (default {out})")
    count = cores()
    add(
        "--workers",
        type=positive,
        default=count,
        metavar="N",
        help="processes; the result is the same for any number (default one for each core)",
    )
    add("--dry-run", action="store_true", help="list the stages, and do nothing")


def add_folder(parser: Parser, what: str, *, required: bool = False) -> None:
    """--from"""
    parser.add_argument(
        "--from", dest="folder", type=Path, metavar="FOLDER", required=required, help=what
    )


def add_origin(parser: Parser, what: str, manifest: str) -> None:
    """--from, --manifest, --tries and --pause."""
    add_folder(parser, f"folder of the files, {what}: no network (default: they are downloaded)")
    add = parser.add_argument
    add(
        "--manifest",
        type=Path,
        metavar="FILE",
        help=f"checksums and addresses of other copies (default: the package's {manifest})",
    )
    add(
        "--tries",
        type=positive,
        default=5,
        metavar="N",
        help="times a download that breaks off is tried (default 5)",
    )
    add(
        "--pause",
        type=not_negative,
        default=5.0,
        metavar="S",
        help="seconds before the second try; then twice as long each time (default 5)",
    )


def origin_of(args: argparse.Namespace, manifest: Path, url: str = "") -> Origin:
    """What the options of ``add_origin`` say; ``manifest``, ``url``: the package's."""
    from ...corpora.download import Patience
    from ...corpora.fetch import Origin

    patience = Patience(args.tries, args.pause)
    return Origin(args.manifest or manifest, args.folder, url, patience)


def add_text(
    parser: Parser, *, size: int = 6000, dictionary: int = -1, clean: bool = False
) -> None:
    """How text is cleaned and split. ``size``: BPE merges or SentencePiece pieces."""
    group = parser.add_argument_group("subwords")
    add, usual = group.add_argument, TextSettings(("", ""))
    add(
        "--subwords",
        choices=("bpe", "spm"),
        default="bpe",
        help="bpe: byte-pair codes of Moses tokens; spm: SentencePiece on plain text (default bpe)",
    )
    add(
        "--bpe-merges",
        type=positive,
        default=size,
        metavar="N",
        help=f"bpe: merges (default {size})",
    )
    add(
        "--bpe-words",
        type=positive,
        default=usual.bpe_words,
        metavar="N",
        help=f"bpe: most frequent words that merges are learnt from (default {usual.bpe_words:,})",
    )
    add(
        "--dictionary",
        type=int,
        default=dictionary,
        metavar="N",
        help=f"bpe: entries of fairseq's dictionary at most; -1: all (default {dictionary})",
    )
    add(
        "--spm-size", type=positive, default=size, metavar="N", help=f"spm: pieces (default {size})"
    )
    add(
        "--spm-sample",
        type=positive,
        default=usual.spm_sample,
        metavar="N",
        help=f"spm: sentences that pieces are learnt from (default {usual.spm_sample:,})",
    )
    add(
        "--spm-coverage",
        type=share,
        default=usual.spm_coverage,
        metavar="X",
        help=f"spm: characters that are pieces, 0 to 1 (default {usual.spm_coverage})",
    )
    group = parser.add_argument_group("cleaning of the training pairs")
    group.add_argument(
        "--clean",
        action=argparse.BooleanOptionalAction,
        default=clean,
        help=f"drop pairs that break one of these (default {'yes' if clean else 'no'})",
    )
    for name, what in (
        ("max_words", "words of a side"),
        ("max_chars", "characters of a side"),
        ("ratio", "longer side to shorter, in characters"),
        ("language_chars", "characters from which on a side is asked for its language"),
        ("certainty", "probability, 0 to 1, of another language; above 1: not asked"),
    ):
        default = next(field.default for field in fields(Limits) if field.name == name)
        group.add_argument(
            f"--{name.replace('_', '-')}",
            type=type(default),
            default=default,
            metavar="X",
            help=f"{what} (default {default})",
        )


def text_of(args: argparse.Namespace, pair: str) -> TextSettings:
    """What the options of ``add_text`` say."""
    source, _, target = pair.partition("-")
    langs = (source, target)
    limits = {f.name: getattr(args, f.name) for f in fields(Limits) if f.name != "langs"}
    own = ("pair", "clean")
    text = {f.name: getattr(args, f.name) for f in fields(TextSettings) if f.name not in own}
    return TextSettings(langs, clean=Limits(langs, **limits) if args.clean else None, **text)


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
