"""Results in comparison: the score of each position encoding, ours and the paper's.

    diet-mt leaderboard                                            results/*.jsonl as text
    diet-mt leaderboard results/tasks/*.jsonl                      the BERT tasks
    diet-mt leaderboard results/news.*.jsonl --directions en-de --systems diet_rel shaw
    diet-mt leaderboard --format html --out leaderboard.html       one static page
    diet-mt leaderboard results/multi30k.en-de.jsonl --format svg --out multi30k.en-de.svg
    diet-mt leaderboard --readme results/README.md                 rewrites a section

Intervals and p-values are computed from the sentence counts that diet-mt evaluate writes. The page
also shows speeds of benchmark/*.jsonl and learning curves of curves/*.jsonl and */curves.jsonl in
the folders of the rows.

The section of --readme is between the lines <!-- results:begin --> and <!-- results:end -->.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..command_line import Parser
from ..errors import UserError

FORMATS = ("text", "markdown", "html", "svg")
PICTURES = ("intervals", "speed", "parameters", "lengths")
DEFAULT_FOLDER = Path("results")


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    add("results", type=Path, nargs="*", metavar="FILE", help="rows (default results/*.jsonl)")
    add("--directions", nargs="+", default=[], metavar="XX-YY", help="only these: en-de ...")
    add("--test-sets", nargs="+", default=[], metavar="NAME", help="only these")
    add("--systems", nargs="+", default=[], metavar="NAME", help="only these: diet_rel ...")
    add("--picture", choices=PICTURES, help="picture of --format svg (default intervals)")
    add("--brief", action="store_true", help="narrow tables of BLEU")
    add("--verbose", action="store_true", help="text with every evaluation: lengths, n-gram "
        "precisions, updates")  # fmt: skip
    add("--format", choices=FORMATS, help="default text; with --readme Markdown")
    add("--out", type=Path, metavar="FILE", help="output file (default standard output)")
    add("--readme", type=Path, metavar="FILE", help="Markdown file whose section is rewritten")
    add("--check", action="store_true", help="write nothing; fail if the file would change")


def run(args: argparse.Namespace) -> None:
    if args.readme and (args.out or args.format not in (None, "markdown")):
        raise UserError("--readme: Markdown without --out; run the command twice")
    if args.out and args.out.is_dir():
        raise UserError(f"--out {args.out}: a folder; give a file")
    if args.check and not (args.readme or args.out):
        raise UserError("--check: give the file to check by --readme or --out")
    if args.picture and args.format != "svg":
        raise UserError("--picture: only with --format svg")
    if args.brief and args.format in ("html", "svg"):
        raise UserError("--brief: only with --format text or markdown")
    if args.verbose and (args.brief or args.readme or args.format not in (None, "text")):
        raise UserError("--verbose: only with --format text and without --brief")
    from ..report.markers import put_section, put_text

    report = _report(args)
    if args.readme:
        put_section(args.readme, "results", report, args.check)
    elif args.out:
        put_text(args.out, report, args.check)
    else:
        print(report, end="")


def _report(args: argparse.Namespace) -> str:
    """The report in its format. Raises UserError where there is nothing to show."""
    from ..report.blocks import markdown, text
    from ..report.boards import board, brief_board
    from ..report.sections import is_of_tasks, read_sections
    from ..report.tasks import task_board

    files = args.results or sorted(DEFAULT_FOLDER.glob("*.jsonl"))
    if args.format == "html" and not args.results:
        files += sorted(DEFAULT_FOLDER.glob("tasks/*.jsonl"))
    if not files:
        raise UserError(f"no {DEFAULT_FOLDER}/*.jsonl here; give files of diet-mt evaluate")
    wanted = {"direction": args.directions, "test set": args.test_sets, "system": args.systems}
    sections, tasks, kept = read_sections(files, wanted)
    folders = list(dict.fromkeys(file.parent for file in files if not is_of_tasks(file)))
    if args.format == "html":
        from ..report.page import page

        return page(sections, tasks, kept, folders)
    if args.format == "svg":
        from ..report.pictures import Sidecars, picture_of, read_speeds
        from ..report.style import drawn

        name = args.picture or PICTURES[0]
        figure = picture_of(name, sections, Sidecars(kept, read_speeds(folders)))
        if figure is None:
            raise UserError(f"--picture {name}: nothing to draw in these results")
        return drawn(figure, "svg").decode()
    blocks = [*(brief_board if args.brief else board)(sections), *task_board(tasks)]
    if tasks and not any(blocks):
        raise UserError("no split of these results is in a table (dev sets, test_LANG)")
    if args.readme or args.format == "markdown":
        return markdown(blocks)
    return text(blocks, verbose=args.verbose)
