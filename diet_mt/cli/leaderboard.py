"""Results side by side: which position encoding gives which score, ours and the paper's.

    diet-mt leaderboard                                            results/*.jsonl as text
    diet-mt leaderboard results/tasks/*.jsonl                      the BERT tasks
    diet-mt leaderboard results/news.*.jsonl --directions en-de --systems diet_rel shaw
    diet-mt leaderboard --format html --out leaderboard.html       one static page
    ... --references data/multi30k.en-de/raw/test.de               with sentences side by side
    diet-mt leaderboard results/multi30k.en-de.jsonl --format svg --out multi30k.en-de.svg
    diet-mt leaderboard --readme results/README.md                 rewrites a section of it

The page has, beside the tables: pictures, speed from benchmark/*.jsonl, learning curves from
curves/*.jsonl and */curves.jsonl, positional logits from figures/patterns.jsonl, each where it lies
beside the rows. With --references (and sources beside them) it compares any two systems: what it
needs of each sentence is kept in sentences/, so that later the page is made without them;
references and sources of a few dozen sentences are kept, too.

The section lies between the lines <!-- results:begin --> and <!-- results:end -->. With --check
nothing is written, and the command fails where the file is not what it would write, or where saved
hypotheses have changed. p-values and intervals are computed from the sentence counts of the rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..command_line import Parser
from ..errors import UserError

if TYPE_CHECKING:
    from ..blocks import Block
    from ..leaderboard.standings import Section

FORMATS = ("text", "markdown", "html", "svg")
PICTURES = ("intervals", "speed", "parameters", "lengths")
USUAL_FOLDER = Path("results")


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("results", type=Path, nargs="*", metavar="FILE", help="rows (default results/*.jsonl)")
    add("--directions", nargs="+", default=[], metavar="XX-YY", help="only these: en-de ...")
    add("--test-sets", nargs="+", default=[], metavar="NAME", help="only these")
    add("--systems", nargs="+", default=[], metavar="NAME", help="only these: diet_rel ...")
    add("--references", type=Path, nargs="+", default=[], metavar="FILE",
        help="raw references: sentences are counted for the page")  # fmt: skip
    add("--sources", type=Path, nargs="+", default=[], metavar="FILE",
        help="of the references, in their order (default: test.en beside test.de)")  # fmt: skip
    add("--picture", choices=PICTURES, help="what --format svg draws (default intervals)")
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
    if args.out and args.out.is_dir():
        raise UserError(f"--out {args.out}: a folder; give the name of a file")
    if args.check and not (args.readme or args.out):
        raise UserError("--check needs the file to check: --readme FILE or --out FILE")
    if args.sources and not args.references:
        raise UserError("--sources are those of --references; give these, too")
    if args.references and args.format not in ("html", "svg"):
        raise UserError("--references are for pictures: give --format html or svg")
    if args.picture and args.format != "svg":
        raise UserError("--picture is for --format svg")
    if args.brief and args.format in ("html", "svg"):
        raise UserError("--brief is for tables: give --format text or markdown")
    if args.verbose and (args.brief or args.readme or args.format not in (None, "text")):
        raise UserError("--verbose is for whole tables as text; the other forms fold what it shows")
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
    from ..blocks import markdown, text
    from ..evaluation.sentences import keep_sentences
    from ..leaderboard.boards import board, brief_board
    from ..leaderboard.selection import asked_for, of_tasks

    files = args.results or sorted(USUAL_FOLDER.glob("*.jsonl"))
    if args.format == "html" and not args.results:
        files += sorted(USUAL_FOLDER.glob("tasks/*.jsonl"))
    if not files:
        raise UserError(f"no {USUAL_FOLDER}/*.jsonl here; give the files of diet-mt evaluate")
    if args.references:
        own = [file for file in files if not of_tasks(file)]
        keep_sentences(own, args.references, args.sources, check=args.check)
    wanted = {"direction": args.directions, "test set": args.test_sets, "system": args.systems}
    sections, tasks = asked_for(files, wanted, check=args.check)
    if args.format in ("html", "svg"):
        return _drawn(args, files, sections, tasks)
    blocks = [*(brief_board if args.brief else board)(sections), *tasks]
    if args.readme or args.format == "markdown":
        return markdown(blocks)
    return text(blocks, verbose=args.verbose)


def _drawn(
    args: argparse.Namespace, files: Sequence[Path], sections: list[Section], tasks: list[Block]
) -> str:
    from ..leaderboard.beside import read_beside
    from ..leaderboard.heat import read_patterns
    from ..leaderboard.page import page
    from ..leaderboard.selection import of_tasks
    from ..leaderboard.svg import svg

    own = [file for file in files if not of_tasks(file)]
    beside = read_beside(own)
    if args.format == "svg":
        return svg(sections, beside, args.picture or PICTURES[0])
    folder = args.out.resolve().parent if args.out else None
    seen = [file.resolve() for file in files]
    # A page elsewhere does not name them: folders of this machine are no part of it.
    inside = folder is not None and all(file.is_relative_to(folder) for file in seen)
    names = [file.relative_to(folder).as_posix() for file in seen] if folder and inside else []
    return page(sections, tasks, beside, read_patterns({file.parent for file in own}), names)
