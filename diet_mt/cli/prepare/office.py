"""LibreOffice's help and interface: prose with long sentences, English with German or Czech.

    diet-mt prepare office en-de                         the archive of translations, 200 MB
    diet-mt prepare office en-cs --from FOLDER           that archive, or en-cs.train.en.gz, ...

35,983 pairs en-de and 36,229 en-cs, each message once, split by pieces of 60 consecutive messages
of a file. Takes two minutes and 100 MB. Licence: MPL 2.0.
"""

from __future__ import annotations

import argparse

from ...command_line import Parser
from .options import (
    add_common,
    add_pair,
    add_source,
    add_text,
    carry_out,
    out_of,
    source_of,
    text_of,
)


def arguments(parser: Parser) -> None:
    add_pair(parser, ("en-de", "de-en", "en-cs", "cs-en"), "source and target: en with de or cs")
    add_common(parser, "data/office.PAIR")
    add_source(parser, "the archive, or texts, plain or .gz")
    add_text(parser)


def run(args: argparse.Namespace) -> None:
    from ...corpora.archives import office

    text, out = text_of(args, args.pair), out_of(args, f"office.{args.pair}")
    carry_out(office(out, text, source_of(args, "office")), args.dry_run)
