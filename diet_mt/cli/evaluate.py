"""Commands over trained models; docstrings are their help."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

from ..bert.squad import SCORINGS
from ..evaluation.options import BEST, best_in
from ..evaluation.requests import (
    AnswerRequest,
    EvaluateRequest,
    PredictRequest,
    Search,
    specification,
)
from ..system.errors import UserError
from ..system.files import make_folder
from ..system.options import Command, File, Folder, Positive, argument, need_file, option


@dataclass(frozen=True, kw_only=True)
class Evaluate(EvaluateRequest, Command):
    """Decodes a test set with a trained model, scores it with SacreBLEU and saves the result.

        diet-mt evaluate data/multi30k.en-de checkpoints/diet_rel.1
        ... --length-penalty gnmt --checkpoint checkpoint_average.pt
        ... --tune-lenpen 0 0.3 0.6 1 1.4 2                 tuned by BLEU on the validation set
        ... --source news.en --reference news.de            any pair of text files
        ... --test-set wmt18                                a test set of SacreBLEU
        ... --int8 --cpu                                    linear layers in 8-bit integers, faster
        ... --dry-run                                       only prints the command

    DATA is a folder made by fairseq-preprocess, or the corpus folder that contains it. CHECKPOINT
    is a checkpoint file, or the folder of a training. The checkpoint determines the translation
    direction. References are the original sentences in raw/, next to the folder of
    fairseq-preprocess. The command adds a row to RESULTS/CORPUS.jsonl and saves the detokenized
    hypotheses in RESULTS/CORPUS/. It accepts all options of fairseq-generate and records them in
    the row and in the file names. Decoding is skipped if the output of the same command and
    checkpoint exists. A row of another training with the same name is not overwritten: rename one
    of the two with --system. A tiny model decodes 1,000 sentences in half a minute on one core.
    """

    passes_on = True
    search: Search
    file: str = option(
        f"checkpoint in the folder (default {BEST})", "", flag="--checkpoint", metavar="FILE"
    )

    def run(self) -> None:
        if bool(self.source) != bool(self.reference):
            raise UserError("--source and --reference must be given together")
        if sum(map(bool, (self.source, self.test_set, self.subset))) > 1:
            raise UserError("--subset, --source and --test-set exclude each other")
        request = replace(self, checkpoint=self._checkpoint())
        from ..evaluation.fairseq_options import import_fairseq

        import_fairseq()
        from ..evaluation.evaluate import evaluate

        lenpens = tuple(dict.fromkeys(self.search.lenpens))
        search = replace(self.search, lenpens=lenpens, options=self.passed)
        print(evaluate(request, search, self.known))

    def _checkpoint(self) -> Path:
        """The checkpoint file; prints a warning if its training has not finished."""
        folder = self.checkpoint
        if folder.is_file():
            if self.file:
                raise UserError(f"--checkpoint: {folder} is a file; give its folder instead")
            return folder
        if not folder.is_dir():
            raise UserError(f"{folder}: no such folder of checkpoints; run diet-mt train first")
        if (folder / "command").exists() and not (folder / "done").exists():
            print(f"evaluate: warning: training in {folder} has not finished", file=sys.stderr)
        return folder / (self.file or BEST)


@dataclass(frozen=True, kw_only=True)
class Average(Command):
    """Averages the weights of several checkpoints of one training (Vaswani et al. 2017).

        diet-mt average --last 5 --dir checkpoints/x --out checkpoints/x/checkpoint_average.pt
        diet-mt average A.pt B.pt C.pt --out checkpoint_average.pt

    The average records its sources and can be decoded like any other checkpoint. It has no
    optimizer state, so training cannot resume from it.
    """

    checkpoints: Sequence[File] = argument("checkpoints; or give --last and --dir", (), nargs="*")
    last: Positive | None = option("average the last N numbered checkpoints of --dir", None)
    dir: Folder | None = option("folder of the checkpoints for --last", None)
    out: File = option("checkpoint to write")
    dry_run: bool = option("only list the checkpoints to average", False)

    def run(self) -> None:
        if (self.last is None) != (self.dir is None) or bool(self.checkpoints) == bool(self.dir):
            raise UserError("give either checkpoints, or --last N and --dir FOLDER")
        from ..evaluation.average import average, last_checkpoints, save

        if self.dir and self.last:
            paths = last_checkpoints(self.dir, self.last)
        else:
            paths = list(self.checkpoints)
        for path in paths:
            need_file(path, "checkpoint")
        if not self.dry_run:
            save(average(paths), self.out)
        print(f"{self.out}\tthe mean of {', '.join(path.name for path in paths)}")


@dataclass(frozen=True, kw_only=True)
class Export(Command):
    """Writes a translation model for ONNX Runtime, torch.export or CTranslate2.

        diet-mt export checkpoints/diet_rel.1 --format onnx --out exported
        diet-mt export checkpoint_average.pt --format ctranslate2 --out exported

    onnx and torch: the encoder and a decoding step as programs for any number of sentences and
    hypotheses and any length within --max-source-positions and --max-target-positions, the
    dictionaries, and config.json. ctranslate2: a model for CTranslate2's Translator, where its
    format has the positions. docs/export.md has a decoding loop and the table of formats and
    encodings. Requires pip install "diet-mt[export]".
    """

    checkpoint: Path = argument("checkpoint file or folder", metavar="CHECKPOINT")
    format: str = option("format", choices=("onnx", "torch", "ctranslate2"))
    out: Folder = option("folder to write, which must not exist")
    data: Folder | None = option("corpus folder or its bin (default: as in the checkpoint)", None)

    def run(self) -> None:
        checkpoint = best_in(self.checkpoint)
        need_file(checkpoint, "checkpoint")
        package = {"onnx": "onnxscript", "ctranslate2": "ctranslate2"}.get(self.format, "torch")
        if find_spec(package) is None:
            raise UserError(f'{package} is not installed; pip install "diet-mt[export]"')
        if self.out.exists():
            raise UserError(f"{self.out}: exists; remove it, or choose another folder")
        from .. import plugin as plugin
        from ..corpora.binarized import bin_folder
        from ..evaluation.checkpoint import load_with_task
        from ..evaluation.fairseq_options import quiet
        from ..export import ctranslate2, programs
        from ..models.diet_transformer import DietTransformerModel

        quiet()
        model, cfg, task = load_with_task(checkpoint, self.data and bin_folder(self.data))
        # Other tasks begin a translation with a symbol of its language.
        if cfg.task._name not in ("translation", "diet_translation"):
            raise UserError(f"{checkpoint}: models of the task {cfg.task._name} cannot be exported")
        if not isinstance(model, DietTransformerModel) or model.cfg.no_cross_attention:
            raise UserError(f"{checkpoint}: not a translation model of diet-mt")
        make_folder(self.out.parent)
        with TemporaryDirectory(prefix=f"{self.out.name}.", dir=self.out.parent) as place:
            folder = Path(place, "model")
            folder.mkdir()
            if self.format == "ctranslate2":
                ctranslate2.save(model, task, folder)
            else:
                programs.save(model, task, self.format, folder)
            folder.rename(self.out)
        print(f"{self.out}\t{self.format} of {checkpoint}")


@dataclass(frozen=True, kw_only=True)
class Verify(Command):
    """Verifies prepared data, checkpoints, rows of results and predicted answers.

        diet-mt verify data/multi30k.en-de                  a prepared corpus, or its bin
        diet-mt verify checkpoints/diet_rel.1 CHECKPOINT.pt
        diet-mt verify results/*.jsonl --references data/multi30k.en-de/raw/test.de
        diet-mt verify predictions.json --references dev-v1.1.json
        diet-mt verify predictions.json --references mlqa.de.json --scoring mlqa --language de

    Prepared data: verifies checksums, compares sentence counts of text and binarized data and of
    the two languages, and checks all tokens against the dictionary. Checkpoints: verifies the
    checksums in the file, the names and shapes of all tensors, and that all values, including those
    of the optimizer, are finite. Prints OK, or a line for each fault.

    Rows (.jsonl): recomputes BLEU with its precisions and length ratio, chrF, signatures and the
    n-gram counts of every sentence from the saved hypotheses; without these, BLEU from the counts.
    References are matched to rows by checksum.

    Answers (.json): prints F1 and exact match of predictions in SQuAD's format as a JSON object,
    computed like the official evaluation scripts. XQuAD and TyDiQA-GoldP are scored like SQuAD. The
    rules of SQuAD 2.0 apply if the data have unanswerable questions. Questions without a prediction
    count as wrong.

    Tables, pages and pictures are not verified; `make results` regenerates them from the rows.
    """

    paths: Sequence[Path] = argument("data, checkpoints, rows or predictions", metavar="PATH")
    references: Sequence[File] = option("raw references of the rows, or gold answers", ())
    scoring: str = option("scoring of the answers", "squad", choices=SCORINGS)
    language: str = option("language of the gold answers, for --scoring mlqa", "", metavar="XX")
    null_odds: File | None = option("null_odds.json; also prints the best thresholds", None)

    def run(self) -> None:
        scored = [path for path in self.paths if path.suffix in (".jsonl", ".json")]
        if not (scored or self.references):
            from ..evaluation.fairseq_options import import_fairseq

            import_fairseq()
            from ..evaluation.verify import self_check

            self_check(list(self.paths))
            return
        if not self.references:
            raise UserError(f"{scored[0]}: give its references with --references")
        answers = [path for path in self.paths if path.suffix != ".jsonl"]
        if answers:
            if len(self.paths) > 1 or len(self.references) > 1:
                raise UserError("answers: give one file of predictions and one of gold answers")
            from ..bert.answer_scores import score_files

            about = {"scoring": self.scoring, "language": self.language}
            print(score_files(self.references[0], answers[0], null_odds=self.null_odds, **about))
            return
        from ..evaluation.hypotheses import rescore

        rescore(list(self.paths), list(self.references))


@dataclass(frozen=True, kw_only=True)
class Predict(PredictRequest, Command):
    """Predicts the labels of GLUE or XNLI with a fine-tuned checkpoint.

        diet-mt predict data/glue/CoLA checkpoints/cola/checkpoint_best.pt --results results/tasks
        diet-mt predict data/glue/MNLI CHECKPOINT --split test test1 --predictions FOLDER

    Prints a line for each split, with the task's metrics if the split has labels; --results saves
    them in RESULTS/TASK.jsonl. Predictions are written to FOLDER/SPLIT.tsv, those of GLUE's test
    sets to the file name required by its server (MNLI-mm.tsv), in GLUE's format:
    index<TAB>prediction, with the gold label as third column if available. The task defaults to the
    name of the data folder.
    """

    split: Sequence[str] = option("splits to predict; dev: all dev sets", ("valid",))

    def run(self) -> None:
        request = replace(self, task=self.task or self.data.absolute().name)
        dev = specification(request.task).dev_splits
        need_file(self.checkpoint, "checkpoint")
        splits = [name for word in self.split for name in (dev if word == "dev" else [word])]
        if not self.dry_run:
            from ..evaluation.predict import predict_splits

            predict_splits(request, splits)
            return
        row = [self.results / f"{request.task}.jsonl"] if self.results else []
        for split in splits:
            files = [*filter(None, [request.file(split)]), *row]
            print("\t".join([request.task, split, *map(str, files)]))


@dataclass(frozen=True, kw_only=True)
class Answer(AnswerRequest, Command):
    """Answers questions with a fine-tuned checkpoint.

        diet-mt answer data/qa CHECKPOINT --split valid test_xquad_de --out answers
        diet-mt answer data/qa CHECKPOINT --file questions.json --out answers/mine

    The questions are splits of the prepared data, or a file in SQuAD's JSON format, which is cut
    into windows as in training. Writes predictions.json, nbest.json and, for SQuAD 2.0,
    null_odds.json to --out, with a subfolder for each split. If gold answers are available, prints
    F1 and exact match; --results saves them as a row of RESULTS/TASK.jsonl. The task defaults to
    that of the split.
    """

    defaults: ClassVar[dict[str, int]] = {"batch_size": 32}  # windows
    split: Sequence[str] = option("splits to answer: valid, test_xquad_de, ...", ())

    def run(self) -> None:
        if bool(self.split) == bool(self.file):
            raise UserError("give either --split or --file")
        for path, what in ((self.checkpoint, "checkpoint"), (self.file, "file")):
            if path:
                need_file(path, what)
        if self.dry_run:
            for split in self.split or [""]:
                print(self.out / split / "predictions.json")
            return
        from ..evaluation.answer import answer_sets

        answer_sets(self, list(self.split))
