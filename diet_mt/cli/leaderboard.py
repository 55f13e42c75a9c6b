"""Results side by side: which position encoding gives which score, ours and the paper's.

    diet-mt leaderboard                                            results/*.jsonl as text
    diet-mt leaderboard results/tasks/*.jsonl                      the BERT tasks
    diet-mt leaderboard results/news.*.jsonl --direction en-de --system diet_rel shaw
    diet-mt leaderboard --format html --out leaderboard.html       one static page
    diet-mt leaderboard --readme results/README.md                 rewrites a section of it

The section lies between the lines <!-- results:begin --> and <!-- results:end -->. With --check
nothing is written, and the command fails where the file is not what it would write, or where kept
hypotheses have changed. p-values are shown where diet-mt compare has computed them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..command_line import Parser
from ..errors import UserError

FORMATS = ("text", "markdown", "html")
USUAL_FOLDER = Path("results")


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("results", type=Path, nargs="*", metavar="FILE", help="rows (default results/*.jsonl)")
    add("--direction", nargs="+", default=[], metavar="XX-YY", help="only these: en-de ...")
    add("--test-set", nargs="+", default=[], metavar="NAME", help="only these")
    add("--system", nargs="+", default=[], metavar="NAME", help="only these: diet_rel ...")
    add("--brief", action="store_true", help="narrow tables of BLEU alone")
    add("--verbose", action="store_true", help="as text: with lengths, n-gram precisions and "
        "updates of every evaluation, which the other forms fold")  # fmt: skip
    add("--format", choices=FORMATS, help="default text; with --readme Markdown")
    add("--out", type=Path, metavar="FILE", help="file to write (default standard output)")
    add("--readme", type=Path, metavar="FILE", help="Markdown file whose section is rewritten")
    add("--check", action="store_true", help="write nothing; fail if something has changed")


def run(args: argparse.Namespace) -> None:
    if args.readme and (args.out or args.format not in (None, "markdown")):
        raise UserError("--readme takes Markdown and no --out; run the command twice")
    if args.check and not (args.readme or args.out):
        raise UserError("--check needs the file to check: --readme FILE or --out FILE")
    from ..leaderboard.readme import put_section, put_text

    shown = _shown(args)
    if args.readme:
        put_section(args.readme, "results", shown, args.check)
    elif args.out:
        put_text(args.out, shown, args.check)
    else:
        print(shown, end="")


def _shown(args: argparse.Namespace) -> str:
    """What was asked for, in its form. Raises UserError where there is no such thing."""
    from ..leaderboard.boards import board, brief_board
    from ..leaderboard.page import page
    from ..leaderboard.render import markdown, text
    from ..leaderboard.selection import asked_for

    files = args.results or sorted(USUAL_FOLDER.glob("*.jsonl"))
    if not files:
        raise UserError(f"no {USUAL_FOLDER}/*.jsonl here; give the files of diet-mt evaluate")
    sections, tasks = asked_for(
        files,
        directions=args.direction,
        test_sets=args.test_set,
        systems=args.system,
        check=args.check,
    )
    if args.format == "html":
        return page(sections, tasks)
    blocks = [*(brief_board if args.brief else board)(sections), *tasks]
    if args.readme or args.format == "markdown":
        return markdown(blocks)
    return text(blocks, verbose=args.verbose)
