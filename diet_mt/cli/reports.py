"""``diet-mt compare``, ``lengths`` and ``leaderboard``, over rows: a class each, with the help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..system.errors import UserError
from ..system.options import Command, File, Positive, argument, option

if TYPE_CHECKING:
    from ..report.blocks import Block

TABLE_FORMATS = ("text", "markdown")
FORMATS = (*TABLE_FORMATS, "html", "svg")
PICTURES = ("intervals", "lengths")
DEFAULT_FOLDER = Path("results")


def show(blocks: Sequence[Block], form: str) -> None:
    """Prints tables in a format."""
    from ..report.blocks import markdown, text

    print(markdown(blocks) if form == "markdown" else text(blocks), end="")


@dataclass(frozen=True, kw_only=True)
class Compare(Command):
    """Significance of the differences: a paired bootstrap test of every two systems over seeds.

        diet-mt compare results/*.jsonl
        diet-mt compare results/multi30k.en-de.jsonl --systems rotary diet_rel
        diet-mt compare results/old.jsonl --references data/multi30k.en-de/raw/test.de
        diet-mt compare results/mine.jsonl --systems rotary diet_rel --show 10

    BLEU, mean of a system's seeds, over 10,000 resamples. Each draws as many sentences as the test
    set has, with replacement and the same for all systems, and adds to each system the chance of
    its seeds, by the variance between seeds of all systems that have several; if none has, that is
    the usual bootstrap over sentences. p is two-sided, 0.0001 at the least. The line of a pair has
    the difference with half of its 95 % interval, p, and the number of seeds of each.

    Everything is computed from the n-gram counts that diet-mt evaluate writes to
    sentences/CORPUS.jsonl.gz. --references adds counts of rows without them: references are
    matched to rows by checksum. --show also prints the sentences on which the first seeds of two
    systems differ most, with sources and references if --references are given.
    """

    results: Sequence[File] = argument("rows: results/CORPUS.jsonl")
    references: Sequence[Path] = option("raw references, for rows without sentence counts", ())
    systems: Sequence[str] = option("two systems (default: all pairs)", (), nargs=2, metavar="NAME")
    show: Positive | None = option("sentences that differ most, with --systems", None)

    def run(self) -> None:
        import logging

        from ..evaluation.hypotheses import count_rows
        from ..evaluation.significance import compare_files, show_sentences

        if self.show and not self.systems:
            raise UserError("--show: give two --systems")
        logging.getLogger("sacrebleu").setLevel(logging.WARNING)
        if self.references:
            count_rows(self.results, self.references)
        compare_files(self.results, self.systems or None)
        if self.show:
            show_sentences(self.results, self.systems, self.show, self.references)


@dataclass(frozen=True, kw_only=True)
class Lengths(Command):
    """Scores by source length, and word accuracy by position in the reference.

        diet-mt lengths results/multi30k.en-de.jsonl --references data/multi30k.en-de/raw/test.de
        ... --systems sinusoidal diet_rel --buckets 4 --train data/multi30k.en-de/raw/train.de
        ... --sources data/newstest.en-de/bpe/test.en --width 10 --trained-to 50 --out lengths.svg
        diet-mt lengths results/*.jsonl --references raw/test*.de --by-test-set

    By bucket of source length BLEU, chrF (SacreBLEU's, of the sentences in the bucket), the
    difference of BLEU to sinusoidal under the same conditions, over the same resamples, and the
    length ratio: hypothesis tokens by reference tokens. By tenth of the reference, word accuracy.
    With --train, the recall of words by their frequency in the training text. Lengths are in tokens
    of the sources separated by spaces: words, or subwords with bpe/test.en. Buckets of too few
    sentences are merged. The 95 % intervals are ours, of 1,000 resamples of the sentences in the
    bucket. Of several seeds of a system values are means, and each resample is the same for all;
    the intervals do not cover the choice of the seed.

    References are matched to rows by checksum; sources are the files next to them.
    """

    results: Sequence[File] = argument("rows: results/CORPUS.jsonl")
    references: Sequence[Path] = option("raw references of the test sets")
    sources: Sequence[File] = option("their sources (default: test.en next to test.de)", ())
    systems: Sequence[str] = option(
        "only these, and sinusoidal for the difference", (), metavar="NAME"
    )
    width: Positive = option("lengths in a bucket", 5, exclusive="buckets")
    buckets: Positive = option("number of buckets of similar size", 0, exclusive="buckets")
    by_test_set: bool = option("each test set as a bucket", False, exclusive="buckets")
    least: Positive | None = option("merge buckets of fewer sentences (default 100)", None)
    trained_to: Positive | None = option("length of the longest training source", None)
    train: File | None = option("target side of the training text, for rare words", None)
    format: str = option("format of the tables", "text", choices=TABLE_FORMATS)
    out: File | None = option("also draw a picture: .png or .svg", None)

    def run(self) -> None:
        if self.out and self.out.suffix not in (".png", ".svg"):
            raise UserError(f"--out {self.out}: name a picture, .png or .svg")
        for name in ("train", "trained_to", "least"):
            if self.by_test_set and getattr(self, name):
                raise UserError(f"--{name.replace('_', '-')}: not with --by-test-set")
        from ..evaluation.lengths import LEAST, parts_of
        from ..report.lengths import blocks_of, picture, sheets_of
        from ..report.style import save

        least = self.least or LEAST
        cut = partial(parts_of, width=self.width, count=self.buckets, least=least)
        sheets = sheets_of(
            *(self.results, self.references, self.sources),
            systems=self.systems,
            cut=None if self.by_test_set else cut,
            training=self.train,
            trained_to=self.trained_to,
        )
        show(blocks_of(sheets), self.format)
        if self.out:
            save(picture(sheets), self.out)


@dataclass(frozen=True, kw_only=True)
class Leaderboard(Command):
    """Results in comparison: the score of each position encoding, ours and the paper's.

        diet-mt leaderboard                                            results/*.jsonl as text
        diet-mt leaderboard results/tasks/*.jsonl                      the BERT tasks
        diet-mt leaderboard results/news.*.jsonl --directions en-de --systems diet_rel shaw
        diet-mt leaderboard --format html --out leaderboard.html       one static page
        diet-mt leaderboard results/multi30k.en-de.jsonl --format svg --out multi30k.en-de.svg
        diet-mt leaderboard --readme results/README.md                 rewrites a section

    Intervals and p-values are computed from the sentence counts that diet-mt evaluate writes. The
    page also shows learning curves of curves/*.jsonl and */curves.jsonl in the folders of the
    rows.

    The section of --readme is between the lines <!-- results:begin --> and <!-- results:end -->.
    """

    results: Sequence[File] = argument("rows (default results/*.jsonl)", (), nargs="*")
    directions: Sequence[str] = option("only these: en-de ...", (), metavar="XX-YY")
    test_sets: Sequence[str] = option("only these", (), metavar="NAME")
    systems: Sequence[str] = option("only these: diet_rel ...", (), metavar="NAME")
    picture: str | None = option("of --format svg (default intervals)", None, choices=PICTURES)
    brief: bool = option("narrow tables of BLEU", False)
    verbose: bool = option("text with every evaluation: lengths, precisions, updates", False)
    format: str | None = option("default text; with --readme Markdown", None, choices=FORMATS)
    out: File | None = option("output file (default standard output)", None)
    readme: File | None = option("Markdown file with a section to rewrite", None)
    check: bool = option("write nothing; fail if the file would change", False)

    def run(self) -> None:
        if self.readme and (self.out or self.format not in (None, "markdown")):
            raise UserError("--readme: Markdown without --out; run the command twice")
        if self.out and self.out.is_dir():
            raise UserError(f"--out {self.out}: a folder; give a file")
        if self.check and not (self.readme or self.out):
            raise UserError("--check: give the file to check by --readme or --out")
        if self.picture and self.format != "svg":
            raise UserError("--picture: only with --format svg")
        if self.brief and self.format in ("html", "svg"):
            raise UserError("--brief: only with --format text or markdown")
        if self.verbose and (self.brief or self.readme or self.format not in (None, "text")):
            raise UserError("--verbose: only with --format text and without --brief")
        from ..report.blocks import put_section, put_text

        report = self._report()
        if self.readme:
            put_section(self.readme, "results", report, self.check)
        elif self.out:
            put_text(self.out, report, self.check)
        else:
            print(report, end="")

    def _report(self) -> str:
        """The report in its format."""
        from ..report.blocks import markdown, text
        from ..report.boards import board, brief_board
        from ..report.sections import is_of_tasks, read_sections
        from ..report.tasks import task_board

        files = list(self.results) or sorted(DEFAULT_FOLDER.glob("*.jsonl"))
        if self.format == "html" and not self.results:
            files += sorted(DEFAULT_FOLDER.glob("tasks/*.jsonl"))
        if not files:
            raise UserError(f"no {DEFAULT_FOLDER}/*.jsonl here; give files of diet-mt evaluate")
        wanted = {
            "direction": list(self.directions),
            "test set": list(self.test_sets),
            "system": list(self.systems),
        }
        sections, tasks, kept = read_sections(files, wanted)
        folders = list(dict.fromkeys(file.parent for file in files if not is_of_tasks(file)))
        if self.format == "html":
            from ..report.page import page

            return page(sections, tasks, kept, folders)
        if self.format == "svg":
            from ..report.pictures import picture_of
            from ..report.style import drawn

            name = self.picture or PICTURES[0]
            figure = picture_of(name, sections, kept)
            if figure is None:
                raise UserError(f"--picture {name}: nothing to draw in these results")
            return drawn(figure, "svg").decode()
        blocks = [*(brief_board if self.brief else board)(sections), *task_board(tasks)]
        if tasks and not any(blocks):
            raise UserError("no split of these results is in a table (dev sets, test_LANG)")
        if self.readme or self.format == "markdown":
            return markdown(blocks)
        return text(blocks, verbose=self.verbose)


@dataclass(frozen=True, kw_only=True)
class Curves(Command):
    """Learning curves: validation perplexity or loss over the updates, one for each training.

        diet-mt bench curves checkpoints/mlm/* --out results/mlm/curves
        diet-mt bench curves checkpoints/mine/* --loss --out results/curves/mine

    Reads train.log and command of the folder of a training by diet-mt train or pretrain, and curves
    of this command (.jsonl). Writes OUT.jsonl, one training on a line, and OUT.png: all curves, and
    their second half on an axis of its own. Trainings with other validation sequences, masking or
    losses are refused.
    """

    logs: Sequence[Path] = argument("folder, train.log, or .jsonl", metavar="LOG")
    out: Path = option("both files, without suffix", metavar="PATH")
    loss: bool = option("loss, on which --patience acts, not perplexity", False)
    svg: bool = option("OUT.svg instead of OUT.png", False)

    def run(self) -> None:
        from ..report.pictures import draw

        measure = "loss" if self.loss else "perplexity"
        draw(list(self.logs), self.out, "svg" if self.svg else "png", measure)
