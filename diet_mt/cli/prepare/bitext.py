"""Parallel text of your own, any two languages.

    diet-mt prepare bitext de-fr --from FOLDER           train.de, train.fr, valid.de, ..., test.fr
    diet-mt prepare bitext ja-en --from FOLDER --subwords spm --ratio 5

Line n of a file translates line n of the other; plain or .gz. The training pairs are cleaned
(counts in clean.tsv); no line of the other files may be empty or invalid. FOLDER is known by its
name: after a change inside of it, remove what was made of it. Source lines of valid and test are
normalized like those of training, references are not. Below a million pairs give fewer subwords,
such as --bpe-merges 8000 or --spm-size 8000.

Languages written without spaces need --subwords spm and, beside others, a larger --ratio; as
targets their BLEU, which is of words, says little: read chrF. Languages that py3langid does not
know, such as nb, need --certainty 2.

Makes raw, clean, tok, bpe.codes, bpe, and bin, what fairseq-train reads. Takes an estimated ten
minutes on two cores for each million pairs. Licence: that of the text.
"""

from __future__ import annotations

import argparse
import re

from ...command_line import Parser
from .options import add_common, add_folder, add_text, carry_out, out_of, text_of


def _pair(text: str) -> str:
    found = re.fullmatch(r"(\w+)-(\w+)", text)
    if not found or found[1] == found[2]:
        raise argparse.ArgumentTypeError(
            f"{text}: give two languages as SOURCE-TARGET, without further hyphens, as in de-pt_BR"
        )
    return text


def arguments(parser: Parser) -> None:
    what = "source and target, as the names of the files end: de-fr"
    parser.add_argument("pair", type=_pair, metavar="PAIR", help=what)
    add_common(parser, "data/bitext.PAIR, data/bitext.PAIR.spm")
    add_folder(parser, "folder of SPLIT.LANGUAGE: train, valid and test", required=True)
    add_text(parser, size=32000, dictionary=32768, clean=True)


def run(args: argparse.Namespace) -> None:
    from ...corpora.recipes import bitext

    text, out = text_of(args, args.pair), out_of(args, f"bitext.{args.pair}")
    carry_out(bitext(out, text, args.folder), args.dry_run)
