"""Decodes a test set with a trained model, scores it with SacreBLEU and keeps the result.

    diet-mt evaluate data/multi30k.en-de checkpoints/diet_rel.1
    ... --length-penalty gnmt --checkpoint checkpoint_average.pt
    ... --tune-lenpen 0 0.3 0.6 1 1.4 2                 chosen by BLEU on the validation set
    ... --source news.en --reference news.de            any pair of text files
    ... --test-set wmt18                                a test set that SacreBLEU knows
    ... --dry-run                                       prints the command, does nothing

DATA is a folder made by fairseq-preprocess, or the corpus folder with it; CHECKPOINT a folder of a
training, or a file. The direction is the checkpoint's. Adds one line to RESULTS/CORPUS.jsonl and
keeps the detokenized hypotheses in RESULTS/CORPUS/. Any option of fairseq-generate may be given; it
becomes part of the line and of the names of files. Decoding is skipped where its output is there,
made by the same command from the same checkpoint. The line of another training of the same name is
not replaced: --system gives one of the two a name of its own. Time: half a minute for a tiny model
and 1,000 sentences on one core.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..command_line import Parser, filled, finite, place, positive
from ..errors import UserError
from ..evaluation.provenance import BEST


def arguments(parser: Parser) -> None:
    parser.passes_on = True
    add = parser.add_argument
    add("data", type=Path, help="made by diet-mt prepare or fairseq-preprocess")
    add("folder", metavar="checkpoint", type=Path, help="folder of a training, or a checkpoint")
    add("--checkpoint", metavar="FILE", help=f"of the folder (default {BEST})")
    add("--subset", default="", help="part of the data (default test, or test1 where DATA has that "
        "for the other direction)")  # fmt: skip
    add("--source", type=Path, metavar="FILE", help="text to decode, a sentence a line")
    add("--reference", type=Path, metavar="FILE", help="its translation, line by line")
    add("--test-set", default="", metavar="NAME", help="of SacreBLEU: wmt18, ...")
    add("--beam", type=positive, default=10, help="hypotheses kept in the search (default 10)")
    penalty = parser.add_mutually_exclusive_group().add_argument
    penalty("--lenpen", type=finite, default=0.6,
        help="exponent of the length penalty (default 0.6)")  # fmt: skip
    penalty("--tune-lenpen", type=finite, nargs="+", default=[], metavar="LENPEN",
        help="decode the validation set with each, then the test set with the one of the highest "
        "BLEU; a row and a table of its own")  # fmt: skip
    add(
        "--length-penalty",
        choices=("fairseq", "gnmt"),
        default="fairseq",
        help="length^LENPEN, or the paper's ((5 + length) / 6)^LENPEN (default fairseq)",
    )
    add("--max-tokens", type=positive, default=4096, help="source tokens of a batch (default 4096)")
    add("--results", type=place, default=Path("results"), help="folder (default results)")
    add("--test-set-name", default="", metavar="TEXT", help="in the record (default: its own)")
    add("--system", default="", metavar="NAME", help="in the record (default: the encoding)")
    add("--dry-run", action="store_true", help="print the command, do nothing")


def run(args: argparse.Namespace) -> None:
    if bool(args.source) != bool(args.reference):
        raise UserError("--source and --reference: give both")
    if sum(map(bool, (args.source, args.test_set, args.subset))) > 1:
        raise UserError("--subset, --source and --test-set: give one of them")
    args.checkpoint = _checkpoint(args)
    from ..evaluation.fairseq_options import import_fairseq

    import_fairseq()
    from ..evaluation.evaluate import EvaluateRequest, evaluate
    from ..evaluation.generation import Search

    search = Search(
        args.beam,
        args.lenpen,
        args.length_penalty,
        args.max_tokens,
        tuple(dict.fromkeys(args.tune_lenpen)),
        options=args.passed,
    )
    print(evaluate(filled(EvaluateRequest, args), search, args.known))


def _checkpoint(args: argparse.Namespace) -> Path:
    """The file to decode with. Warns where its training goes on."""
    folder: Path = args.folder
    if folder.is_file():
        if args.checkpoint:
            raise UserError(f"--checkpoint: {folder} is one already; give its folder")
        return folder
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder of checkpoints; train first")
    if args.checkpoint and "/" in args.checkpoint:
        raise UserError(f"--checkpoint {args.checkpoint}: give the name of a file in {folder}")
    if (folder / "command").exists() and not (folder / "done").exists():
        print(f"evaluate: warning: training in {folder} has not finished", file=sys.stderr)
    return folder / (args.checkpoint or BEST)
