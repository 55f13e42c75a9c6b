"""Decodes a test set by our beam search and by fairseq's, and lists every difference.

    diet-mt parity checkpoints/*.1 > parity.jsonl

Compared are all hypotheses of all sentences: tokens, order, scores and log-probabilities by token.
A sentence with differences is decoded again by both in float64. Where they agree then, it is a tie:
two candidates of one step whose scores float32 does not tell apart.
CHECKPOINT is a file, or a folder with a checkpoint_best.pt, of a translation model.
JSON lines on stdout, one for each checkpoint; progress on stderr.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ..command_line import Parser, finite, need_file, positive
from ..evaluation.provenance import best_in


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("checkpoints", type=Path, nargs="+", metavar="CHECKPOINT", help="file, or its folder")
    add("--data", type=Path, metavar="FOLDER", help="corpus or its bin (default: the checkpoint's)")
    add("--subset", default="test", help="default test")
    add("--beam", type=positive, default=10, help="default 10")
    add("--lenpen", type=finite, default=0.6, help="default 0.6")
    add("--max-tokens", type=positive, default=4096, help="of a source batch (default 4096)")
    add("--dry-run", action="store_true", help="only list what would be decoded")


def run(args: argparse.Namespace) -> None:
    checkpoints = [best_in(path) for path in args.checkpoints]
    for path in checkpoints:
        need_file(path, "checkpoint")
    if args.dry_run:
        print("\n".join(map(str, checkpoints)))
        return
    from .. import plugin as plugin
    from ..bench.rows import environment
    from ..corpora.binarized import bin_folder
    from ..decoding.parity import Searches
    from ..evaluation.checkpoint import load_with_task
    from ..evaluation.fairseq_options import quiet

    quiet()
    facts = environment("cpu", "parity", args.words)
    for path in checkpoints:
        loaded = load_with_task(path, args.data and bin_folder(args.data))
        print(path, file=sys.stderr)
        how = {name: getattr(args, name) for name in ("subset", "max_tokens", "beam", "lenpen")}
        searches = Searches(*loaded, **how)
        print(json.dumps({**searches.compared(), **facts}), flush=True)
