"""Looks at what is there again, and fails where something is not as it should be.

    diet-mt verify data/multi30k.en-de                  prepared data: the folder, or its bin
    diet-mt verify checkpoints/diet_rel.1 CHECKPOINT.pt
    diet-mt verify results/*.jsonl --references data/multi30k.en-de/raw/test.de
    diet-mt verify README.md results/README.md results/tasks.md results/leaderboard.html
    diet-mt verify results/*.svg
    diet-mt verify predictions.json --references dev-v1.1.json
    diet-mt verify predictions.json --references mlqa.de.json --scoring mlqa --language de

Prepared data: checksums, the number of sentences beside the text that they were made of, both sides
of each split, every token beside its dictionary. Checkpoints: checksums within the file, all
tensors that the model has, in their shapes and finite, the optimizer's state; what it is, and what
trained it. For each a line with OK, or a line for each thing that is wrong.

Rows (.jsonl): sentences, BLEU, its bootstrap interval, length ratio and precisions, chrF, the
signatures, and the n-gram counts of every sentence equal those of the saved hypotheses. References
are matched to rows by checksum.

Tables, pages and pictures (.md, .html, .svg): what diet-mt leaderboard would write now, of the rows
beside them, or in the folder of that name (tasks.md of tasks/*.jsonl); a section of a page whose
first line names its command, <!-- results:begin diet-mt leaderboard FILE --brief -->, by this,
called in the page's folder. Tables of diet-mt lengths, and pictures of it, figures and bench curves
(.md, .png, .svg): they are as they were made, and so are the rows that they were made of.

Answers (.json), anyone's, in SQuAD's format: F1 and exact match, equal to the official evaluations,
as one JSON object. SQuAD's scoring serves XQuAD and TyDiQA-GoldP too; that of version 2.0 is used
where a question is impossible. A question without a prediction counts as wrong.
"""

from __future__ import annotations

import argparse
import io
import re
import shlex
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from urllib.parse import unquote

from ..bert.questions.collections import SCORINGS
from ..command_line import Parser
from ..errors import UserError, printable
from ..evaluation.json_rows import fields_in
from ..made_of import check_mark, has_mark
from . import leaderboard

WRITTEN = (".md", ".html", ".svg", ".png")
_ROWS = re.compile(r'<meta name="rows" content="([^"]*)">')
_OUTSIDE = re.compile(r"^[-/]|(^|/)\.\.(/|$)")  # or what would be read as an option
# What the command of a section may have.
OF_SECTIONS = ("results", "directions", "test_sets", "systems", "brief", "readme")


def arguments(parser: Parser) -> None:
    add = parser.add_argument
    what = "prepared data, checkpoints, rows, pages and pictures of them, or answers"
    add("kept", type=Path, nargs="+", metavar="PATH", help=what)
    what = "of rows and answers: raw references; gold answers"
    add("--references", type=Path, nargs="+", default=[], metavar="FILE", help=what)
    add("--scoring", choices=SCORINGS, default="squad", help="of answers (default squad)")
    add("--language", default="", metavar="XX", help="of the gold answers, for --scoring mlqa")
    add("--null-odds", type=Path, metavar="FILE", help="of SQuAD 2.0: adds the best thresholds")


def run(args: argparse.Namespace) -> None:
    written = [path for path in args.kept if path.suffix in WRITTEN]
    if written:
        if len(written) < len(args.kept) or args.references:
            raise UserError(f"{written[0]}: verified without references, apart from data and rows")
        _check_each(written)
        return
    scored = [path for path in args.kept if path.suffix in (".jsonl", ".json")]
    if not (scored or args.references):
        from ..evaluation.fairseq_options import import_fairseq

        import_fairseq()
        from ..evaluation.self_check import self_check

        self_check(args.kept)
        return
    if not args.references:
        raise UserError(f"{scored[0]}: give --references, what it was scored with")
    answers = [path for path in args.kept if path.suffix != ".jsonl"]
    if answers:
        if len(args.kept) > 1 or len(args.references) > 1:
            raise UserError("answers are verified alone: one FILE and one file of gold answers")
        from ..bert.answer_scores import score_files

        print(
            score_files(
                *(args.references[0], answers[0]),
                scoring=args.scoring,
                language=args.language,
                null_odds=args.null_odds,
            )
        )
        return
    if (args.scoring, args.language, args.null_odds) != ("squad", "", None):
        raise UserError("--scoring, --language and --null-odds are of answers, not of rows")
    from ..evaluation.kept import read_references
    from ..evaluation.rescore import rescore

    rescore(args.kept, read_references(args.references))


def _check_each(written: Sequence[Path]) -> None:
    """Raises UserError, after all have been looked at, where one is not as its rows have it."""
    wrong = []
    for path in written:
        try:
            print(f"{path}: OK, {_checked(path)}", flush=True)
        except UserError as error:
            named = str(error) if printable(str(path)) in str(error) else f"{path}: {error}"
            wrong.append(named)
            if len(written) > 1:
                print(named, flush=True)
    if wrong:
        told = f"{len(wrong)} of {len(written)} checks failed"
        raise UserError(wrong[0] if len(written) == 1 else told)


def _checked(path: Path) -> str:
    """What was found to be right. Raises UserError."""
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    if path.suffix == ".png" or (has_mark(path) and not _is_board(path)):
        check_mark(path)
        return "as it was made, and its rows are those that it was made of"
    leaderboard.run(_writing(path))
    return "what its rows say"


def _is_board(path: Path) -> bool:
    """Whether diet-mt leaderboard makes it, or a section of it: then that is checked."""
    from ..leaderboard.readme import command_of

    if path.suffix == ".md":
        return command_of(path, "results") is not None
    return path.suffix == ".html" or _picture(path) is not None


def _picture(path: Path) -> tuple[Path, str] | None:
    """Rows and kind of a picture of the leaderboard, by its name; None of another."""
    beside = path.parent.glob("*.jsonl")
    rows = sorted(each for each in beside if path.name.startswith(f"{each.stem}."))
    rows = [row for row in rows if "hypotheses" in fields_in([row])]
    pictures = {
        f"{row.stem}.{kind}.svg": (row, kind) for row in rows for kind in leaderboard.PICTURES
    }
    pictures |= {f"{row.stem}.svg": (row, leaderboard.PICTURES[0]) for row in rows}
    return pictures.get(path.name)


def _writing(path: Path) -> argparse.Namespace:
    """Arguments of diet-mt leaderboard that check ``path``.

    Raises UserError where it is not known what it is made of.
    """
    from ..leaderboard.readme import command_of

    parser = Parser("leaderboard", None)
    leaderboard.arguments(parser)
    command = command_of(path, "results") if path.suffix == ".md" else None
    if not command:
        return parser.parse_args([*_usual(path, section=command is not None), "--check"])
    if command[:2] != ["diet-mt", "leaderboard"]:
        raise UserError(f"{path}: its section is made by {shlex.join(command)}; verify knows only "
                        "diet-mt leaderboard")  # fmt: skip
    said = io.StringIO()
    try:
        with redirect_stdout(said), redirect_stderr(said):
            args = parser.parse_args(command[2:])
    except SystemExit:
        why = said.getvalue().partition("\n")[0].removeprefix("error: ")
        raise UserError(f"{path}: its command is none: {why}") from None
    usual = vars(parser.parse_args([]))
    other = {name for name, value in vars(args).items() if value != usual[name]} - set(OF_SECTIONS)
    if other or args.readme not in (None, Path(path.name)) or not args.results:
        raise UserError(f"{path}: its command must name rows, and no file but its own to write")
    args.results = [path.parent / file for file in args.results]
    args.readme, args.check = path, True
    return args


def _usual(path: Path, *, section: bool) -> list[str]:
    """Arguments of diet-mt leaderboard that write ``path``, from the rows that it names, those
    beside it, or those of the folder of its name.

    Raises UserError where there are none.
    """
    rows = sorted(path.parent.glob("*.jsonl"))
    how = ["--readme", str(path)]
    if path.suffix == ".md" and not section:
        rows = sorted(path.with_suffix("").glob("*.jsonl"))
        how = ["--format", "markdown", "--out", str(path)]
        fields = fields_in(rows)
        if fields and not {"bleu", "main_metric"} & fields:
            raise UserError(f"{path}: no command writes it as a whole; there is nothing to compare")
    if path.suffix == ".html":
        rows = _rows_of_page(path, rows)
        how = ["--format", "html", "--out", str(path)]
    if path.suffix == ".svg":
        row, kind = _picture(path) or (None, "")
        rows = [row] if row else []
        how = ["--format", "svg", "--picture", kind, "--out", str(path)]
    if not rows:
        raise UserError(
            f"{path}: no rows beside it, nor in a folder of its name, that it could be made of"
        )
    return [*map(str, rows), *how]


def _rows_of_page(path: Path, beside: list[Path]) -> list[Path]:
    """Those that the page names, in its folder; without names the usual ones.

    Raises UserError where it names others, or not all that lie beside it.
    """
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    found = _ROWS.search(text)
    if not found:
        return [*beside, *sorted(path.parent.glob("tasks/*.jsonl"))]
    named = [unquote(file) for file in found[1].split()]
    for file in named:
        if _OUTSIDE.search(file):
            raise UserError(f"{path}: names rows outside of its folder: {file}")
    rows = [path.parent / file for file in named]
    for row in beside:
        if row not in rows:
            raise UserError(f"{path}: made without {row}; make it again with these rows, too")
    return rows
