"""Commands that print or draw results; docstrings are their help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..figures import FigureConfig
from ..system.errors import UserError
from ..system.options import Command, File, Folder, Positive, Seed, argument, option

if TYPE_CHECKING:
    from ..report.blocks import Block

TABLE_FORMATS = ("text", "markdown")
DEFAULT_FOLDER = Path("results")
FIGURES = ("rank", "patterns", "similarity", "segments", "heads")


def show(blocks: Sequence[Block], form: str) -> None:
    """Prints tables as text or Markdown."""
    from ..report.blocks import markdown, text

    print(markdown(blocks) if form == "markdown" else text(blocks), end="")


@dataclass(frozen=True, kw_only=True)
class Compare(Command):
    """Tests BLEU differences between systems for significance by paired bootstrap resampling.

        diet-mt compare results/*.jsonl
        diet-mt compare results/multi30k.en-de.jsonl --systems rotary diet_rel
        diet-mt compare results/mine.jsonl --systems rotary diet_rel --show 10

    The score of a system is the mean BLEU of its seeds. Each of 10,000 resamples draws the
    sentences of the test set with replacement, the same ones for all systems, and adds to each
    system a random deviation for its seeds. Its variance is estimated from all systems with several
    seeds; without any, the test is the usual bootstrap over sentences. p-values are two-sided and
    at least 0.0001. Each line has the difference of a pair with half of its 95 % interval, its
    p-value, and the number of seeds of either system.

    Scores are computed from the n-gram counts in sentences/CORPUS.jsonl.xz, written by diet-mt
    evaluate. --show also prints the sentences on which the first seeds of two systems differ most;
    --references adds their sources and references, matched to rows by checksum.
    """

    results: Sequence[File] = argument("rows: results/CORPUS.jsonl")
    systems: Sequence[str] = option(
        "two systems (default: every pair)", (), nargs=2, metavar="NAME"
    )
    show: Positive | None = option("print N sentences that differ most; requires --systems", None)
    references: Sequence[Path] = option("raw references to print with --show", ())

    def run(self) -> None:
        import logging

        from ..evaluation.significance import compare_files, show_sentences

        if self.show and not self.systems:
            raise UserError("--show requires two --systems")
        logging.getLogger("sacrebleu").setLevel(logging.WARNING)
        compare_files(self.results, self.systems)
        if self.show:
            show_sentences(self.results, self.systems, self.show, self.references)


@dataclass(frozen=True, kw_only=True)
class Lengths(Command):
    """Reports BLEU by source length, or on texts of different lengths.

        diet-mt lengths results/multi30k.en-de.jsonl --buckets 4 --systems sinusoidal diet_rel
        ... --sources data/newstest.en-de/bpe/test.en --references data/newstest.en-de/raw/test.de
            --width 10 --trained-to 50 --out lengths.svg
        diet-mt lengths results/*.jsonl --by-test-set

    For each bucket of source lengths: SacreBLEU's BLEU of its sentences, the difference in BLEU
    from the sinusoidal system under the same conditions, and the length ratio, hypothesis tokens
    divided by reference tokens. Source lengths are in words; with --sources, in tokens of these
    files, such as subwords. Buckets with too few sentences are merged. 95 % intervals are from
    1,000 bootstrap resamples of the sentences in a bucket. Values are means over the seeds of a
    system; the intervals do not cover the variance between seeds.

    Scores are computed from the n-gram counts in sentences/CORPUS.jsonl.xz, written by diet-mt
    evaluate.
    """

    results: Sequence[File] = argument("rows: results/CORPUS.jsonl")
    systems: Sequence[str] = option(
        "only these systems; sinusoidal remains the baseline", (), metavar="NAME"
    )
    width: Positive = option("width of a bucket in tokens", 5, exclusive="buckets")
    buckets: Positive | None = option("number of buckets of equal size", None, exclusive="buckets")
    by_test_set: bool = option("use each test set as a bucket", False, exclusive="buckets")
    least: Positive = option("minimum number of sentences in a bucket", 100)
    sources: Sequence[File] = option("sources whose tokens are counted (default: words)", ())
    references: Sequence[File] = option("references of --sources, to match them to rows", ())
    trained_to: Positive | None = option("length of the longest source in training", None)
    format: str = option("format of the tables", "text", choices=TABLE_FORMATS)
    out: File | None = option("picture to draw: .png or .svg", None)

    def run(self) -> None:
        from ..report.lengths import blocks_of, parts_of, picture, sheets_of
        from ..report.style import save

        cut = partial(parts_of, width=self.width, count=self.buckets or 0, least=self.least)
        sheets = sheets_of(
            self.results,
            systems=self.systems,
            cut=None if self.by_test_set else cut,
            references=self.references,
            sources=self.sources,
        )
        show(blocks_of(sheets, self.trained_to), self.format)
        if self.out:
            save(picture(sheets, self.trained_to), self.out)


@dataclass(frozen=True, kw_only=True)
class Leaderboard(Command):
    """Compares the scores of position encodings, with those published in the paper.

        diet-mt leaderboard                                            results/*.jsonl as text
        diet-mt leaderboard results/tasks/*.jsonl                      the BERT tasks
        diet-mt leaderboard results/news.*.jsonl --directions en-de --systems diet_rel shaw
        diet-mt leaderboard --format html --out leaderboard.html       one static page
        diet-mt leaderboard --readme results/translation.md            rewrites a section

    Intervals and p-values are computed from the sentence counts that diet-mt evaluate writes. The
    HTML page includes the learning curves in curves/*.jsonl and */curves.jsonl next to the rows.

    --readme rewrites the section between <!-- results:begin --> and <!-- results:end -->.
    """

    results: Sequence[File] = argument("rows (default results/*.jsonl)", (), nargs="*")
    directions: Sequence[str] = option("only these directions: en-de ...", (), metavar="XX-YY")
    test_sets: Sequence[str] = option("only these test sets", (), metavar="NAME")
    systems: Sequence[str] = option("only these systems: diet_rel ...", (), metavar="NAME")
    brief: bool = option("narrow tables of scores", False)
    verbose: bool = option("list every evaluation: lengths, precisions, updates", False)
    format: str | None = option(
        "format (default text; with --readme markdown)", None, choices=(*TABLE_FORMATS, "html")
    )
    out: File | None = option("output file (default standard output)", None)
    readme: File | None = option("Markdown file with a section to rewrite", None)
    check: bool = option("do not write; fail if the file is out of date", False)

    def run(self) -> None:
        if self.readme and (self.out or self.format not in (None, "markdown")):
            raise UserError("--readme excludes --out and other formats; run the command twice")
        if self.check and not (self.readme or self.out):
            raise UserError("--check requires --readme or --out")
        from ..report.blocks import put_section, put_text

        report = self._report()
        if self.readme:
            put_section(self.readme, "results", report, self.check)
        elif self.out:
            put_text(self.out, report, self.check)
        else:
            print(report, end="")

    def _report(self) -> str:
        """The report as text, Markdown or HTML."""
        from ..report.blocks import markdown, text
        from ..report.boards import board
        from ..report.sections import read_sections
        from ..report.tasks import task_board

        form = self.format or ("markdown" if self.readme else "text")
        files = list(self.results) or sorted(DEFAULT_FOLDER.glob("*.jsonl"))
        if form == "html" and not self.results:
            files += sorted(DEFAULT_FOLDER.glob("tasks/*.jsonl"))
        if not files:
            raise UserError(f"no files {DEFAULT_FOLDER}/*.jsonl; give rows of diet-mt evaluate")
        sections, tasks, counts = read_sections(
            files, self.systems, self.directions, self.test_sets
        )
        if form == "html":
            from ..report.page import page

            return page(sections, tasks, counts, list(dict.fromkeys(file.parent for file in files)))
        blocks = [*board(sections, brief=self.brief), *task_board(tasks)]
        if tasks and not any(blocks):
            raise UserError("no table has a split of these results (dev sets or test_LANG)")
        return markdown(blocks) if form == "markdown" else text(blocks, verbose=self.verbose)


@dataclass(frozen=True, kw_only=True)
class Claims(Command):
    """Tests the claims of Chen et al. 2021 on rows of results.

        diet-mt claims                                                  the rows in results/
        diet-mt claims --readme results/claims.md --figure results/summary.png
        diet-mt claims --brief --readme results/README.md

    Prints a line for each claim, pair of systems and data set with rows: the paper's difference;
    ours with its 95 % interval, by the bootstrap of diet-mt compare; the smallest difference that
    the data detect with 80 % power; a verdict; if undecided, the data that would decide it.
    report/claims.yaml of the package lists the claims and their files. --brief prints a line for
    each claim and pair, with our differences by verdict.

    --figure draws figure 1: DIET-ABS and DIET-REL compared with positions at the input, by
    benchmark. --readme rewrites the section between <!-- claims:begin --> and <!-- claims:end -->.
    """

    results: Folder = argument("folder of rows (default results)", DEFAULT_FOLDER, nargs="?")
    format: str = option("format of the table", "text", choices=TABLE_FORMATS)
    brief: bool = option("one line for each pair of systems", False)
    readme: File | None = option("Markdown file with a section to rewrite", None)
    check: bool = option("with --readme: do not write; fail if the file is out of date", False)
    figure: File | None = option("picture to draw: .png or .svg", None)

    def run(self) -> None:
        from ..report.blocks import markdown, put_section
        from ..report.claims import brief_board, claims_board, evidence, read_claims, summary
        from ..report.style import save

        every = evidence(self.results, read_claims())
        board = brief_board(every) if self.brief else claims_board(every)
        if self.readme:
            put_section(self.readme, "claims", markdown(board), self.check)
        else:
            show(board, self.format)
        if self.figure:
            save(summary(every), self.figure)


@dataclass(frozen=True, kw_only=True)
class Curves(Command):
    """Draws learning curves: validation perplexity or loss over the updates.

        diet-mt bench curves checkpoints/mlm/* --out results/mlm/curves
        diet-mt bench curves checkpoints/mine/* --loss --out results/curves/mine

    Reads train.log and command in the folders of trainings by diet-mt train or pretrain, or curves
    written by this command (.jsonl). Writes OUT.jsonl, a line for each training, and OUT.png, with
    a second panel for the second half of the curves. Trainings whose validation sequences, masking
    or losses differ cannot be compared and are an error.
    """

    logs: Sequence[Path] = argument("folder of a training, train.log, or .jsonl", metavar="LOG")
    out: Path = option("output path without suffix", metavar="PATH")
    loss: bool = option("draw the loss (monitored by --patience), not perplexity", False)
    svg: bool = option("write OUT.svg instead of OUT.png", False)

    def run(self) -> None:
        from ..report.curves import draw

        measure = "loss" if self.loss else "perplexity"
        draw(list(self.logs), self.out, "svg" if self.svg else "png", measure)


@dataclass(frozen=True, kw_only=True)
class Figures(Command):
    """Draws the figures of Chen et al. 2021 for trained checkpoints, and lists local heads.

        diet-mt figures checkpoints/diet_abs.1 checkpoints/diet_rel.1 \\
            --data data/multi30k.en-de/bin --out figures
        ... --only patterns heads
        diet-mt figures --out figures          # redraws them from the saved numbers

    CHECKPOINT is a translation model or a masked language model: a file, or a folder with
    checkpoint_best.pt. Each figure is written as PNG and SVG, and its numbers as JSON lines:

        rank        rank and singular values of attention logits and of       figures 2 and 8
                    positional logits
        patterns    positional logits by head, as heat maps, or as curves     figures 4 and 7
                    if they depend only on the distance
        similarity  cosine similarity of positions, at the input and in       figure 5
                    the factors of attention
        segments    patterns over two segments of 16 tokens each              figure 6
        heads       local heads and their distances: a table on stdout

    Logits are computed in float64 by the model's own attention, including the biases of its
    projections. If a model has fewer positions than --rank-tokens or --positions, the figures of
    all models have that smaller number. Rank plots state the lengths of the longest training
    sentences; curves beyond the largest distance in training mark it. Three tiny models take half a
    minute.
    """

    checkpoints: Sequence[Path] = argument(
        "checkpoint file or folder (default: redraw the numbers saved in --out)",
        (),
        nargs="*",
        metavar="CHECKPOINT",
    )
    data: Path | None = option("binarized training data", None, metavar="BIN")
    out: Folder = option("output folder")
    only: Sequence[str] = option("figures to draw (default all)", FIGURES, choices=FIGURES)
    format: str = option("format of the tables", "text", choices=TABLE_FORMATS)
    config: FigureConfig

    def run(self) -> None:
        if bool(self.checkpoints) != bool(self.data):
            raise UserError("checkpoints and --data BIN must be given together")
        from ..figures.draw import draw, measure, saved

        if self.data:
            files = measure(self.checkpoints, self.data, self.out, self.only, self.config)
        else:
            files = saved(self.out, self.only)
        for file in files:
            if table := draw(file):
                show(table, self.format)


@dataclass(frozen=True, kw_only=True)
class Theorems(Command):
    """Checks the theorems of Chen et al. 2021 numerically, on random draws.

        diet-mt theorems --seed 2

    Theorem 1: with positions added at the input, the rank of a head's logits is at most the head
    size; with positions inside attention, it can be larger. Theorem 2: word and position embeddings
    that are added at the input have equal gradients, whereas position tables per head have
    different ones. For the ranks of checkpoints, use diet-mt figures --only rank. Prints text to
    stdout within seconds.
    """

    seed: Seed = option("seed of the random draws", 1)

    def run(self) -> None:
        from ..figures.theorems import report

        print(report(self.seed), end="")
