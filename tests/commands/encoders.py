"""A tokenizer, a corpus for masked words, tasks, and tiny encoders trained on them."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

from diet_mt.bert import qa, tokenizer
from diet_mt.bert.settings import WindowSizes

from ..bert.made import THINGS, WORDS, coloured, sentence, write_glue
from ..corpora.wmt18 import sentences
from ..prepare.running import prepare
from .runner import Done
from .workshop import BATCHES, IN_ONE, ONE_CHECKPOINT, USER_DIR, Shared, write_lines

LONGEST = 64
SIZE = (
    "--encoder-layers", 2, "--encoder-embed-dim", 32, "--encoder-ffn-embed-dim", 48,
    "--encoder-attention-heads", 2,
)  # fmt: skip
ENCODER = (*SIZE, "--max-source-positions", LONGEST)
RECIPE = (
    "--optimizer", "adam", "--lr", 0.003, "--lr-scheduler", "polynomial_decay",
    "--total-num-update", 200, "--seed", 1, *BATCHES, *IN_ONE,
    "--log-format", "json", "--log-interval", 1,
)  # fmt: skip
MASKED_LM = (
    "--task", "masked_lm", "--criterion", "masked_lm", "--batch-size", 16,
    "--tokens-per-sample", LONGEST, "--sample-break-mode", "complete",
)  # fmt: skip
# The special tokens of the data recipes: <s> first, another </s> between the sentences.
PAIRS = (
    "--task", "diet_sentence_prediction", "--criterion", "sentence_prediction",
    "--num-classes", 2, "--init-token", 0, "--separator-token", 2, "--max-positions", LONGEST,
    "--batch-size", 16,
)  # fmt: skip
# A fine-tuning starts from weights alone.
RESET = ("--reset-optimizer", "--reset-dataloader", "--reset-meters")
HEAD = "sentence_classification_head"  # fairseq's name for the only one
GLUE = {"train": 160, "dev": 37, "test": 11}  # examples
WINDOWS = WindowSizes(max_tokens=48, stride=16, max_question=20)
QUESTIONS = {"train": 160, "valid": 30, "test_xquad_en": 9, "test_mlqa_de": 7}


def architecture(encoding: str) -> str:
    return f"roberta_{encoding.replace('-', '_')}_tiny"


class Encoders(Shared):
    @property
    def vocabulary(self) -> Path:
        """Folder of ``wordpiece.json``, ``dict.txt`` and the corpus for masked_lm."""
        return self.once("masked", self._write_vocabulary)

    def _write_vocabulary(self, folder: Path) -> None:
        draw = random.Random(4)
        of_glue = [sentence(draw, draw.choice(THINGS), draw.choice(WORDS)) for _ in range(100)]
        texts = {
            part: [pair["en"] for pair in sentences(count, seed=seed)]
            for part, count, seed in (("train", 300, 3), ("valid", 45, 4))
        }
        text = write_lines(self.folder / "masked.txt", texts["train"] + of_glue)
        tokenizer.learn_wordpiece([text], folder / tokenizer.WORDPIECE, 200)
        tokenizer.write_dictionary_of(tokenizer.load(folder), folder / "dict.txt")
        splitter = tokenizer.load(folder)
        parts = {}
        for part, lines in texts.items():
            pieces = [" ".join(splitter.pieces(line)) for line in lines]
            parts[part] = write_lines(self.folder / f"masked.{part}", pieces)
        known = self.folder / "masked.dict.txt"
        (folder / "dict.txt").rename(known)  # it is written there again
        given = [(f"--{part}pref", path) for part, path in parts.items()]
        words = ("--only-source", "--srcdict", known, "--destdir", folder)
        self.run("preprocess", *words, *given).ok()

    @property
    def glue(self) -> Path:
        return self.once("glue", lambda folder: write_glue(folder, GLUE))

    def task(self, name: str) -> Path:
        """A task of GLUE, prepared; without the tokenizer of its vocabulary."""

        def make(folder: Path) -> None:
            given = ("--from", self.glue, "--vocab", self.vocabulary, "--max-length", LONGEST)
            prepare("glue", name, *given, "--workers", 1, "--out", folder).ok()
            (folder / tokenizer.WORDPIECE).unlink()

        return self.once(name, make)

    @property
    def questions(self) -> Path:
        """A folder as diet-mt prepare qa makes it."""
        return self.once("questions", self._write_questions)

    def _write_questions(self, folder: Path) -> None:
        for name in ("dict.txt", "wordpiece.json"):
            shutil.copy(self.vocabulary / name, folder / name)
        for seed, (split, count) in enumerate(QUESTIONS.items(), start=1):
            file = coloured(folder / f"{split}.json", count, seed)
            scoring = "mlqa" if "mlqa" in split else "squad"
            language = split.rpartition("_")[2] if "_" in split else "en"
            qa.prepare(file, folder, folder / split, WINDOWS, language=language, scoring=scoring)

    def pretrain(self, encoding: str, save_dir: Path, *more: Any) -> Done:
        """fairseq-train on masked words; ``more`` comes last and so wins."""
        arch = ("--arch", architecture(encoding), "--save-dir", save_dir)
        options = (*USER_DIR, *MASKED_LM, *ENCODER, *RECIPE, *arch)
        return self.run("train", self.vocabulary, *options, *more)

    def finetune(self, encoding: str, save_dir: Path, *more: Any) -> Done:
        """fairseq-train on pairs of sentences."""
        arch = ("--arch", architecture(encoding), "--save-dir", save_dir)
        options = (*USER_DIR, *PAIRS, *ENCODER, *RECIPE, *arch)
        return self.run("train", self.task("RTE"), *options, *more)

    def pretrained(self, encoding: str) -> Path:
        """Folder with ``checkpoint_last.pt`` of a training without segments."""
        words = ("--max-update", 30, *ONE_CHECKPOINT)
        return self.once(
            f"pretrained.{encoding}", lambda folder: self.pretrain(encoding, folder, *words)
        )

    def checkpoint(self, encoding: str) -> Path:
        return self.pretrained(encoding) / "checkpoint_last.pt"

    def finetuned(self, encoding: str) -> Path:
        """The same with segments per head, fine-tuned on sentence pairs."""
        start = ("--restore-file", self.checkpoint(encoding), *RESET)
        segments = ("--segment-encoding", "per-head", "--max-update", 30, *ONE_CHECKPOINT)
        return self.once(
            f"finetuned.{encoding}",
            lambda folder: self.finetune(encoding, folder, *start, *segments),
        )

    @property
    def answering(self) -> Path:
        """Folder of diet-rel fine-tuned on questions, with checkpoints and ``log``."""
        words = (
            *USER_DIR, *ENCODER, *BATCHES, *IN_ONE, "--arch", "roberta_diet_rel_tiny",
            "--finetune-from-model", self.checkpoint("diet-rel"), "--segment-encoding", "per-head",
            "--task", "extractive_qa", "--criterion", "extractive_qa", "--max-positions", LONGEST,
            "--best-checkpoint-metric", "f1", "--maximize-best-checkpoint-metric",
            "--optimizer", "adam", "--lr", 0.01, "--batch-size", 32, "--dropout", 0,
            "--attention-dropout", 0, "--max-epoch", 8, "--no-epoch-checkpoints",
            "--log-format", "json", "--seed", 1,
        )  # fmt: skip
        return self.once(
            "answering",
            lambda folder: self.run("train", self.questions, *words, "--save-dir", folder),
        )
