"""Results side by side: which position encoding gives which BLEU, ours and the paper's.

    diet-mt leaderboard                                               results/*.jsonl as text
    ... results/news.*.jsonl --direction en-de --system diet_rel shaw     some of them
    ... --format html --out results/leaderboard.html                  one static page
    ... --readme README.md                                            rewrites the README's section

With ``--check`` nothing is written, and the command fails where the file is not what it would
write, or where kept hypotheses have changed. The section of the README lies between the lines
``<!-- results:begin -->`` and ``<!-- results:end -->``. p-values are shown where ``diet-mt
compare`` has computed them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..command_line import Parser, run
from ..errors import UserError
from ..evaluation.comparisons import Comparison, Key, file_beside, read_comparisons
from ..evaluation.groups import group
from ..evaluation.kept import kept_hypotheses
from ..evaluation.records import Result, read_results
from ..leaderboard.markdown import markdown
from ..leaderboard.page import page
from ..leaderboard.readme import put_section, put_text
from ..leaderboard.selection import select
from ..leaderboard.standings import Section, section_of
from ..leaderboard.text import text

FORMATS: Mapping[str, Callable[[Sequence[Section]], str]] = {
    "text": text,
    "markdown": markdown,
    "html": page,
}
USUAL_FOLDER = Path("results")


def usual_files() -> list[Path]:
    """``results/*.jsonl`` here. Raises UserError if there are none."""
    files = sorted(USUAL_FOLDER.glob("*.jsonl"))
    if not files:
        raise UserError(
            f"no {USUAL_FOLDER}/*.jsonl here; give the files that scripts/evaluate.sh wrote"
        )
    return files


def sections(args: argparse.Namespace) -> list[Section]:
    """What was asked for. Raises UserError where there is no such thing."""
    rows: list[Result] = []
    comparisons: dict[Key, Comparison] = {}
    for path in args.results or usual_files():
        results = read_results(path)
        if args.check:
            for result in results:
                kept_hypotheses(path.parent, result)
        rows += results
        comparisons.update(read_comparisons(file_beside(path)))
    groups = select(
        group(rows), directions=args.direction, test_sets=args.test_set, systems=args.system
    )
    if not groups:
        raise UserError("the files hold no results; scripts/evaluate.sh adds them")
    return [section_of(each, comparisons, args.system) for each in groups]


def _parser() -> Parser:
    parser = Parser("leaderboard", __doc__)
    add = parser.add_argument
    add("results", type=Path, nargs="*", help="written by evaluate.sh (default results/*.jsonl)")
    add("--direction", nargs="+", default=[], metavar="XX-YY", help="only these: en-de ...")
    add("--test-set", nargs="+", default=[], metavar="NAME", help="only these")
    add("--system", nargs="+", default=[], metavar="NAME", help="only these: diet_rel ...")
    add("--format", choices=tuple(FORMATS), help="default text; with --readme Markdown")
    add("--out", type=Path, metavar="FILE", help="file to write (default standard output)")
    add("--readme", type=Path, metavar="FILE", help="Markdown file whose section is rewritten")
    add("--check", action="store_true", help="write nothing; fail if something has changed")
    return parser


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)

    def body() -> None:
        if args.readme and (args.out or args.format not in (None, "markdown")):
            raise UserError("--readme takes Markdown and no --out; run the command twice")
        if args.check and not (args.readme or args.out):
            raise UserError("--check needs the file to check: --readme FILE or --out FILE")
        form = args.format or ("markdown" if args.readme else "text")
        shown = FORMATS[form](sections(args))
        if args.readme:
            put_section(args.readme, "results", shown, args.check)
        elif args.out:
            put_text(args.out, shown, args.check)
        else:
            print(shown, end="")

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
