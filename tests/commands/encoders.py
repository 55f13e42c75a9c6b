"""A tokenizer, a corpus for masked words, sentence pairs, and tiny encoders trained on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from diet_mt.bert import tokenizer

from ..corpora.wmt18 import sentences
from .runner import Done
from .workshop import BATCHES, IN_ONE, ONE_CHECKPOINT, USER_DIR, Shared

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
# The marks of the data recipes: <s> first, another </s> between the sentences.
PAIRS = (
    "--task", "diet_sentence_prediction", "--criterion", "sentence_prediction",
    "--num-classes", 2, "--init-token", 0, "--separator-token", 2, "--max-positions", LONGEST,
    "--batch-size", 16,
)  # fmt: skip
# A fine-tuning starts from weights alone.
RESET = ("--reset-optimizer", "--reset-dataloader", "--reset-meters")
HEAD = "sentence_classification_head"  # fairseq's name for the only one


def architecture(encoding: str) -> str:
    return f"roberta_{encoding.replace('-', '_')}_tiny"


class Encoders(Shared):
    @property
    def vocabulary(self) -> Path:
        """Folder of ``wordpiece.json``, ``dict.txt`` and the corpus for masked_lm."""
        return self.once("masked", self._write_vocabulary)

    def _write_vocabulary(self, folder: Path) -> None:
        texts = {
            part: [pair["en"] for pair in sentences(count, seed=seed)]
            for part, count, seed in (("train", 300, 3), ("valid", 45, 4))
        }
        raw = self._write(self.folder / "masked.txt", texts["train"])
        tokenizer.learn_wordpiece([raw], folder / tokenizer.WORDPIECE, 170)
        splitter = tokenizer.load(folder)
        tokenizer.write_dictionary_of(splitter, folder / "dict.txt")
        self._binarize(folder, texts)

    @property
    def pairs(self) -> Path:
        """Folder with ``input0``, ``input1`` and ``label``: whether two sentences begin alike."""
        return self.once("pairs", self._write_pairs)

    def _write_pairs(self, folder: Path) -> None:
        texts: dict[str, dict[str, list[str]]] = {"input0": {}, "input1": {}, "label": {}}
        for part, count, seed in (("train", 140, 5), ("valid", 21, 6)):
            made = [pair["en"] for pair in sentences(2 * count, seed=seed)]
            one, other = made[:count], made[count:]
            texts["input0"][part], texts["input1"][part] = one, other
            texts["label"][part] = [
                "yes" if a.split()[:2] == b.split()[:2] else "no"
                for a, b in zip(one, other, strict=True)
            ]
        known = (self.vocabulary / "dict.txt").read_text(encoding="utf-8")
        for name, by_part in texts.items():
            (folder / name).mkdir()
            given = "no 1\nyes 1\n" if name == "label" else known
            (folder / name / "dict.txt").write_text(given, encoding="utf-8", newline="\n")
            self._binarize(folder / name, by_part, split=name != "label")

    def _binarize(self, folder: Path, texts: dict[str, list[str]], split: bool = True) -> None:
        """fairseq-preprocess of the pieces of ``texts``, by part, with dict.txt of ``folder``."""
        splitter = tokenizer.load(self.vocabulary if folder.name != "masked" else folder)
        parts = []
        for part, lines in texts.items():
            pieces = [" ".join(splitter.pieces(line)) for line in lines] if split else lines
            name = self.folder / f"{folder.name}.{part}"
            parts += [f"--{part}pref", self._write(name, pieces)]
        known = self.folder / f"{folder.name}.dict.txt"
        (folder / "dict.txt").rename(known)  # it is written there again
        given = ("--only-source", "--srcdict", known, "--destdir", folder)
        self.run("preprocess", given, *parts).ok()

    @staticmethod
    def _write(path: Path, lines: list[str]) -> Path:
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        return path

    def pretrain(self, encoding: str, save_dir: Path, *more: Any) -> Done:
        """fairseq-train on masked words; ``more`` comes last and so wins."""
        arch = ("--arch", architecture(encoding), "--save-dir", save_dir)
        options = (*USER_DIR, *MASKED_LM, *ENCODER, *RECIPE, *arch)
        return self.run("train", self.vocabulary, *options, *more)

    def finetune(self, encoding: str, save_dir: Path, *more: Any) -> Done:
        """fairseq-train on sentence pairs."""
        arch = ("--arch", architecture(encoding), "--save-dir", save_dir)
        options = (*USER_DIR, *PAIRS, *ENCODER, *RECIPE, *arch)
        return self.run("train", self.pairs, *options, *more)

    def pretrained(self, encoding: str) -> Path:
        """Folder with ``checkpoint_last.pt``, of a training without segments."""
        words = ("--max-update", 30, *ONE_CHECKPOINT)
        return self.once(
            f"pretrained.{encoding}", lambda folder: self.pretrain(encoding, folder, *words)
        )

    def finetuned(self, encoding: str) -> Path:
        """The same with segments per head, fine-tuned on sentence pairs."""
        start = ("--restore-file", self.pretrained(encoding) / "checkpoint_last.pt", *RESET)
        segments = ("--segment-encoding", "per-head", "--max-update", 30, *ONE_CHECKPOINT)
        return self.once(
            f"finetuned.{encoding}",
            lambda folder: self.finetune(encoding, folder, *start, *segments),
        )
