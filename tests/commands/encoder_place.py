"""A vocabulary, prepared tasks of GLUE and a pretrained encoder, all of them toys."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from diet_mt.bert import glue, labelled_stages
from diet_mt.bert.tokenizer import WORDPIECE, learn_wordpiece, load, write_dictionary_of

from ..bert.made import THINGS, WORDS, sentence, write_glue
from .runner import Done
from .workshop import IN_ONE, USER_DIR, Shared

SIZES = {"train": 160, "dev": 37, "test": 11}
MAX_LENGTH = 24  # tokens
MODEL = (
    "--encoder-layers", "2", "--encoder-embed-dim", "32", "--encoder-ffn-embed-dim", "48",
    "--encoder-attention-heads", "2", "--max-source-positions", MAX_LENGTH,
)  # fmt: skip
BATCHES = ("--required-batch-size-multiple", "1", *IN_ONE)


class EncoderPlace(Shared):
    @property
    def glue(self) -> Path:
        return self.once("glue", lambda folder: write_glue(folder, SIZES))

    @property
    def vocabulary(self) -> Path:
        """As the bin folder of prepare-mlm.sh: the tokenizer, dict.txt and binarized text."""
        return self.once("vocabulary", self._write_vocabulary)

    def _write_vocabulary(self, folder: Path) -> None:
        draw = random.Random(4)
        lines = [sentence(draw, draw.choice(THINGS), draw.choice(WORDS)) for _ in range(200)]
        text, pieces = folder / "text", folder / "pieces"
        text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        learn_wordpiece([text], folder / WORDPIECE, 72)
        tokenizer = load(folder)
        split = (" ".join(tokenizer.pieces(line)) for line in lines)
        pieces.write_text("".join(f"{line}\n" for line in split), encoding="utf-8")
        write_dictionary_of(tokenizer, folder / "dict.given")
        self._binarize(folder / "dict.given", folder, pieces, pieces)

    def _binarize(self, dictionary: Path, to: Path, train: Path, valid: Path, *tests: Path) -> None:
        given = ("--only-source", "--srcdict", dictionary, "--destdir", to)
        parts = ["--trainpref", train, "--validpref", valid]
        if tests:
            parts += ["--testpref", ",".join(map(str, tests))]
        self.run("preprocess", given, parts).ok()

    def task(self, name: str) -> Path:
        """As diet-mt prepare glue makes it."""
        return self.once(name, lambda folder: self._prepare(name, folder))

    def _prepare(self, name: str, folder: Path) -> None:
        raw, pieces = folder / "raw", folder / "pieces"
        glue.write_glue(self.glue, glue.task_named(name), raw)
        labelled_stages.split_folder(raw, pieces, self.vocabulary, MAX_LENGTH, 1)
        for part in ("input0", "input1"):
            if (pieces / f"train.{part}").exists():
                files = [pieces / f"{split}.{part}" for split in ("train", "valid", "test")]
                self._binarize(self.vocabulary / "dict.txt", folder / part, *files)
        if (raw / "labels.txt").exists():
            files = [raw / f"{split}.label" for split in ("train", "valid")]
            self._binarize(raw / "labels.txt", folder / "label", *files)
        else:
            (folder / "label").mkdir()
            for split in ("train", "valid"):
                (folder / "label" / f"{split}.label").write_bytes(
                    (raw / f"{split}.label").read_bytes()
                )

    @property
    def pretrained(self) -> Path:
        """A checkpoint of ``masked_lm`` without segments."""
        return self.once("pretrained", self._pretrain) / "checkpoint_best.pt"

    def _pretrain(self, folder: Path) -> Done:
        task = ("--task", "masked_lm", "--criterion", "masked_lm")
        arch = ("--arch", "roberta_diet_rel_tiny")
        size = ("--tokens-per-sample", MAX_LENGTH, "--batch-size", 16, "--max-update", 20)
        how = ("--optimizer", "adam", "--lr", "0.003", "--max-positions", MAX_LENGTH, "--seed", 1)
        where = ("--save-dir", folder, "--no-epoch-checkpoints", *BATCHES)
        return self.run("train", self.vocabulary, USER_DIR, task, arch, MODEL, size, how, where)

    def fine_tune(self, name: str, save: Path, *more: Any) -> Done:
        """fairseq-train on a task; ``more`` comes last and so wins."""
        return self.run("train", *self.fine_tuning(name), "--save-dir", save, *more)

    def fine_tuning(self, name: str) -> tuple[Any, ...]:
        task, spec = self.task(name), glue.TASKS[name]
        return (
            task, USER_DIR, "--arch", "roberta_diet_rel_tiny", MODEL, BATCHES,
            "--task", "diet_sentence_prediction", "--criterion", "diet_sentence_prediction",
            "--init-token", 0, "--separator-token", 2, "--max-positions", MAX_LENGTH,
            "--num-classes", spec.classes, "--metrics", " ".join(spec.metrics),
            *(["--regression-target"] if spec.labels.is_score else []),
            "--best-checkpoint-metric", spec.main_metric, "--maximize-best-checkpoint-metric",
            "--segment-encoding", "per-head", "--finetune-from-model", self.pretrained,
            "--optimizer", "adam", "--lr", "0.003", "--batch-size", 16, "--max-epoch", 6,
            "--no-epoch-checkpoints", "--log-format", "json", "--seed", 1,
        )  # fmt: skip
