"""Results of fine-tuning side by side, ours and the paper's, as Markdown.

python -m diet_mt.leaderboard.task_table                                results/tasks/*.jsonl
python -m diet_mt.leaderboard.task_table results/tasks/CoLA.jsonl       one task
... --system diet-rel learned --out results/tasks.md            some systems, to a file

With ``--check`` nothing is written, and the command fails if the file is not made from these rows.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..command_line import run
from ..errors import UserError
from ..evaluation.task_records import TaskResult, read_task_results
from .readme import put_text
from .task_markdown import task_markdown

USUAL_FOLDER = Path("results/tasks")


def read_all(files: list[Path]) -> list[TaskResult]:
    """The rows of all files. Raises UserError where there are none."""
    found = [row for path in files for row in read_task_results(path)]
    if not found:
        raise UserError(
            f"no results in {', '.join(map(str, files)) or USUAL_FOLDER}; "
            "scripts/finetune-glue.sh and the like add them"
        )
    return found


def selected(results: list[TaskResult], systems: list[str]) -> list[TaskResult]:
    """The results of these systems; none named: of all. Raises UserError for an unknown one."""
    known = {result.system for result in results}
    for name in systems:
        if name not in known:
            raise UserError(f"system '{name}': choose from {', '.join(sorted(known))}")
    return [each for each in results if not systems or each.system in systems]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="diet_mt.leaderboard.task_table",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", type=Path, nargs="*", help=f"default {USUAL_FOLDER}/*.jsonl")
    parser.add_argument("--system", nargs="+", default=[], help="only these (default all)")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="file to write (default standard output)"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail if FILE differs")
    args = parser.parse_args(argv)

    def body() -> None:
        if args.check and not args.out:
            raise UserError("--check needs the file to check: --out FILE")
        files = args.files or sorted(USUAL_FOLDER.glob("*.jsonl"))
        text = task_markdown(selected(read_all(files), args.system))
        if not text:
            raise UserError("the results are of no split that a table shows (dev sets, test_LANG)")
        if args.out:
            put_text(args.out, text, args.check)
        else:
            print(text, end="")

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
