"""``diet-mt evaluate``, ``average``, ``parity`` and ``verify``: a class each, with the help."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..bert.squad import SCORINGS
from ..evaluation.options import BEST, best_in
from ..evaluation.requests import EvaluateRequest, Search
from ..system.errors import UserError
from ..system.options import Command, File, Finite, Folder, Positive, argument, need_file, option


@dataclass(frozen=True, kw_only=True)
class Evaluate(EvaluateRequest, Command):
    """Decodes a test set with a trained model, scores it with SacreBLEU and saves the result.

        diet-mt evaluate data/multi30k.en-de checkpoints/diet_rel.1
        ... --length-penalty gnmt --checkpoint checkpoint_average.pt
        ... --tune-lenpen 0 0.3 0.6 1 1.4 2                 chosen by BLEU on the validation set
        ... --source news.en --reference news.de            any pair of text files
        ... --test-set wmt18                                a test set that SacreBLEU knows
        ... --dry-run                                       prints the command, does nothing

    DATA is a folder made by fairseq-preprocess, or the corpus folder with it; CHECKPOINT a folder
    of a training, or a file. The direction is the checkpoint's. Adds one line to
    RESULTS/CORPUS.jsonl and saves the detokenized hypotheses in RESULTS/CORPUS/. Any option of
    fairseq-generate may be given; it becomes part of the line and of the names of files. Decoding
    is skipped if its output exists, made by the same command from the same checkpoint. The line of
    another training of the same name is not replaced: give one of the two a name with --system.
    Time: half a minute for a tiny model and 1,000 sentences on one core.
    """

    passes_on = True
    search: Search
    file: str = option(
        f"file of the folder (default {BEST})", "", flag="--checkpoint", metavar="FILE"
    )
    passed: Sequence[str] = ()
    known: Sequence[str] = ()

    def run(self) -> None:
        if bool(self.source) != bool(self.reference):
            raise UserError("--source and --reference: give both")
        if sum(map(bool, (self.source, self.test_set, self.subset))) > 1:
            raise UserError("--subset, --source and --test-set: give one of them")
        request = replace(self, checkpoint=self._checkpoint())
        from ..evaluation.fairseq_options import import_fairseq

        import_fairseq()
        from ..evaluation.evaluate import evaluate

        lenpens = tuple(dict.fromkeys(self.search.lenpens))
        search = replace(self.search, lenpens=lenpens, options=self.passed)
        print(evaluate(request, search, self.known))

    def _checkpoint(self) -> Path:
        """The file to decode with; a warning if its training has not finished."""
        folder, file = self.checkpoint, self.file
        if folder.is_file():
            if file:
                raise UserError(f"--checkpoint: {folder} is one already; give its folder")
            return folder
        if not folder.is_dir():
            raise UserError(f"{folder}: no such folder of checkpoints; train first")
        if "/" in file:
            raise UserError(f"--checkpoint {file}: give the name of a file in {folder}")
        if (folder / "command").exists() and not (folder / "done").exists():
            print(f"evaluate: warning: training in {folder} has not finished", file=sys.stderr)
        return folder / (file or BEST)


@dataclass(frozen=True, kw_only=True)
class Average(Command):
    """Averages the weights of several checkpoints of one training, as Vaswani et al. 2017 did.

        diet-mt average --last 5 --dir checkpoints/x --out checkpoints/x/checkpoint_average.pt
        diet-mt average A.pt B.pt C.pt --out checkpoint_average.pt

    The average decodes like any checkpoint. It records its sources and has no optimizer state:
    training cannot continue from it.
    """

    checkpoints: Sequence[File] = argument("or --last and --dir", (), nargs="*")
    last: Positive | None = option("the latest N numbered checkpoints", None)
    dir: Folder | None = option("folder of --last", None)
    out: File = option("checkpoint to write")
    dry_run: bool = option("print what would be averaged, do nothing", False)

    def run(self) -> None:
        if (self.last is None) != (self.dir is None) or bool(self.checkpoints) == bool(self.dir):
            raise UserError("give either checkpoints or --last N --dir FOLDER")
        from ..evaluation.average import average, last_checkpoints, save

        if self.dir and self.last:
            paths = last_checkpoints(self.dir, self.last)
        else:
            paths = list(self.checkpoints)
        if self.out.is_dir():
            raise UserError(f"--out {self.out}: a folder; give the name of a file")
        for path in paths:
            need_file(path, "checkpoint")
        if not self.dry_run:
            save(average(paths), self.out)
        print(f"{self.out}\tthe mean of {', '.join(path.name for path in paths)}")


@dataclass(frozen=True, kw_only=True)
class Parity(Command):
    """Decodes a test set by our beam search and by fairseq's, and lists every difference.

        diet-mt parity checkpoints/*.1 > parity.jsonl

    Compared are all hypotheses of all sentences: tokens, order, scores and log-probabilities of
    tokens. A sentence with differences is decoded again by both in float64. If they agree then, it
    is a tie: two candidates of one step whose scores are equal in float32.
    CHECKPOINT is a file, or a folder with a checkpoint_best.pt, of a translation model.
    JSON lines on stdout, one for each checkpoint; progress on stderr.
    """

    checkpoints: Sequence[Path] = argument("file, or its folder", metavar="CHECKPOINT")
    data: Folder | None = option("corpus or its bin (default: the checkpoint's)", None)
    subset: str = option("part of the data", "test")
    beam: Positive = option("beam size", 10)
    lenpen: Finite = option("exponent of the length penalty", 0.6)
    max_tokens: Positive = option("source tokens of a batch", 4096)
    dry_run: bool = option("list the checkpoints, do nothing", False)
    words: Sequence[str] = ()

    def run(self) -> None:
        checkpoints = [best_in(path) for path in self.checkpoints]
        for path in checkpoints:
            need_file(path, "checkpoint")
        if self.dry_run:
            print("\n".join(map(str, checkpoints)))
            return
        from .. import plugin as plugin
        from ..bench.rows import environment
        from ..corpora.binarized import bin_folder
        from ..decoding.parity import Searches
        from ..evaluation.checkpoint import load_with_task
        from ..evaluation.fairseq_options import quiet

        quiet()
        facts = environment("cpu", "parity", self.words)
        for path in checkpoints:
            loaded = load_with_task(path, self.data and bin_folder(self.data))
            print(path, file=sys.stderr)
            searches = Searches(
                *loaded,
                subset=self.subset,
                max_tokens=self.max_tokens,
                beam=self.beam,
                lenpen=self.lenpen,
            )
            print(json.dumps({**searches.compared(), **facts}), flush=True)


@dataclass(frozen=True, kw_only=True)
class Verify(Command):
    """Checks the integrity of data, checkpoints, saved hypotheses and answers.

        diet-mt verify data/multi30k.en-de                  prepared data: the folder, or its bin
        diet-mt verify checkpoints/diet_rel.1 CHECKPOINT.pt
        diet-mt verify results/*.jsonl --references data/multi30k.en-de/raw/test.de
        diet-mt verify predictions.json --references dev-v1.1.json
        diet-mt verify predictions.json --references mlqa.de.json --scoring mlqa --language de

    Prepared data: checksums, the number of sentences of text and binarized data, both sides of each
    split, every token against its dictionary. Checkpoints: checksums within the file, all tensors
    of the model, their shapes and finite values, the optimizer's state. Prints a line with OK, or a
    line for each fault.

    Rows (.jsonl): sentences, BLEU, its bootstrap interval, length ratio and precisions, chrF, the
    signatures, and the n-gram counts of every sentence equal those of the saved hypotheses.
    References are matched to rows by checksum.

    Answers (.json), anyone's, in SQuAD's format: F1 and exact match, equal to the official
    evaluations, as one JSON object. SQuAD's scoring serves XQuAD and TyDiQA-GoldP too; that of
    version 2.0 is used if a question is impossible. A question without a prediction counts as
    wrong.

    Tables, pages and pictures are not checked: `make results` makes them again from the rows.
    """

    paths: Sequence[Path] = argument("data, checkpoints, rows or answers", metavar="PATH")
    references: Sequence[File] = option("raw references of rows, or gold answers", ())
    scoring: str = option("scoring of answers", "squad", choices=SCORINGS)
    language: str = option("language of the gold answers, for --scoring mlqa", "", metavar="XX")
    null_odds: File | None = option("of SQuAD 2.0: adds the best thresholds", None)

    def run(self) -> None:
        scored = [path for path in self.paths if path.suffix in (".jsonl", ".json")]
        if not (scored or self.references):
            from ..evaluation.fairseq_options import import_fairseq

            import_fairseq()
            from ..evaluation.verify import self_check

            self_check(list(self.paths))
            return
        if not self.references:
            raise UserError(f"{scored[0]}: give --references, the texts it was scored with")
        answers = [path for path in self.paths if path.suffix != ".jsonl"]
        if answers:
            if len(self.paths) > 1 or len(self.references) > 1:
                raise UserError("answers: give one FILE and one file of gold answers")
            from ..bert.answer_scores import score_files

            about = {"scoring": self.scoring, "language": self.language}
            print(score_files(self.references[0], answers[0], null_odds=self.null_odds, **about))
            return
        if (self.scoring, self.language, self.null_odds) != ("squad", "", None):
            raise UserError("--scoring, --language and --null-odds: only for answers")
        from ..evaluation.hypotheses import rescore

        rescore(list(self.paths), list(self.references))
