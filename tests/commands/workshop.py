"""A toy language pair, a tiny trained model per encoding, and what fairseq prints as data.

Of the toy pair every word has one translation, and neighbours change places: word order is to be
learnt. Sentences are of many lengths, so batches hold padding.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils

from ..processes import once
from .runner import PLUGIN, Done, Runner

WORDS = {"bal": "ONE", "der": "TWO", "fim": "SIX", "gol": "TEN", "hup": "RED", "jas": "BIG"} | {
    "kem": "OLD", "lir": "NEW", "mon": "HOT", "nuf": "DRY", "pas": "WET", "rek": "LOW"
}  # fmt: skip
# Sentences per part. fairseq-fixed cuts what exceeds a multiple of eight by default.
SIZES = {"train": 300, "valid": 21, "test": 37}
LONGEST = 12  # words
USER_DIR = ("--user-dir", PLUGIN)
SPY = ("--user-dir", Path(__file__).with_name("diet_mt_spy"))
# The corpus has up to 12 words and an end. Two numbers, so that none passes for the other.
MAX_SOURCE, MAX_TARGET = 40, 36
MODEL = (
    "--encoder-layers", "2", "--decoder-layers", "2",
    "--encoder-embed-dim", "32", "--decoder-embed-dim", "32",
    "--encoder-ffn-embed-dim", "48", "--decoder-ffn-embed-dim", "48",
    "--encoder-attention-heads", "2", "--decoder-attention-heads", "2",
    "--max-source-positions", MAX_SOURCE, "--max-target-positions", MAX_TARGET,
    "--share-all-embeddings", "--dropout", "0.1",
)  # fmt: skip
# Of trainings, whose batches depend on it: as in the recipes.
BATCHES = ("--required-batch-size-multiple", "1")
# Another process for the batches of each epoch would take longer than the epoch.
IN_ONE = ("--num-workers", 0)
RECIPE = (
    "--optimizer", "adam", "--lr", "0.01", "--lr-scheduler", "inverse_sqrt",
    "--warmup-updates", "40", "--max-tokens", "400", "--seed", "1", *BATCHES, *IN_ONE,
    "--log-format", "json", "--log-interval", "1",
)  # fmt: skip
ONE_CHECKPOINT = ("--no-epoch-checkpoints", "--save-interval", "999", "--validate-interval", "999")
LANGUAGES = ("--source-lang", "src", "--target-lang", "tgt")
# The encodings that go through every command: a table in the logits, and mixed keys with positions
# at the input. All encodings are run within one process, by tests/layers and tests/models.
TRAINED = ("diet-rel", "linformer")
# Options of an encoding with which more of it is used.
OWN_OPTIONS = {"linformer": ("--linformer-k", "6")}
UPDATES = 100  # enough for diet-rel to learn the order of words in part, few enough to leave doubts
SEARCH = ("--beam", "10", "--lenpen", "0.6", "--max-len-b", "30")
# A line of scores is printed with four decimals, and float32 rounds differently in another order.
TOLERANCE = 3e-4


def translate(words: list[str]) -> list[str]:
    """The right translation: word for word, the words of each pair in reverse."""
    turned = [words[i ^ 1] if i ^ 1 < len(words) else words[i] for i in range(len(words))]
    return [WORDS[word] for word in turned]


def write_corpus(folder: Path) -> None:
    """``PART.src`` and ``PART.tgt`` for each part of SIZES."""
    draw = random.Random(2021)
    for part, size in SIZES.items():
        sources = [draw.choices(sorted(WORDS), k=draw.randint(2, LONGEST)) for _ in range(size)]
        write_lines(folder / f"{part}.src", [" ".join(words) for words in sources])
        write_lines(folder / f"{part}.tgt", [" ".join(translate(words)) for words in sources])


def write_lines(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path


def architecture(encoding: str) -> str:
    return f"{encoding.replace('-', '_')}_tiny"


class Shared:
    """``folder`` may be shared by test processes: each thing is made once, behind a lock."""

    def __init__(self, folder: Path, run: Runner) -> None:
        self.folder = folder
        self.run = run

    def once(self, name: str, make: Callable[[Path], object]) -> Path:
        """The folder of this name, which ``make`` fills on first use. The output of a command that
        it returns is saved there as ``log``.
        """

        def fill(folder: Path) -> None:
            done = make(folder)
            if isinstance(done, Done):
                text = done.ok().stdout + done.stderr
                (folder / "log").write_text(text, encoding="utf-8", newline="")

        return once(self.folder, name, fill)


class Workshop(Shared):
    def __init__(self, folder: Path, run: Runner) -> None:
        super().__init__(folder, run)
        self._decoded: dict[str, str] = {}

    @property
    def corpus(self) -> Path:
        """Folder of the text: train, valid and test, .src and .tgt."""
        return self.once("text", write_corpus)

    def lines(self, name: str = "test.src") -> list[str]:
        text = (self.corpus / name).read_text(encoding="utf-8")
        return text.split("\n")[:-1]

    @property
    def bin(self) -> Path:
        """Folder that fairseq-preprocess made, with a joined dictionary."""
        return self.once("bin", lambda folder: self.binarize(folder, self.corpus, *SIZES))

    @property
    def long(self) -> Path:
        """As ``bin``; the test set has 60 words, more than positions, between two sentences."""

        def make(folder: Path) -> None:
            lines = self.lines()
            words = " ".join(lines).split()[:60]
            write_lines(folder / "test.src", [lines[0], " ".join(words), lines[1]])
            write_lines(folder / "test.tgt", ["ONE", "TWO", "SIX"])
            self.binarize(folder, folder, "test", known=True)

        return self.once("long", make)

    def binarize(self, to: Path, text: Path, *parts: str, known: bool = False) -> Done:
        """fairseq-preprocess. ``known``: with the dictionary of the corpus."""
        prefixes = [(f"--{part}pref", text / part) for part in parts]
        given = ("--srcdict", self.bin / "dict.src.txt") if known else ()
        words = (*LANGUAGES, "--joined-dictionary", *given, *prefixes)
        return self.run("preprocess", *words, "--destdir", to).ok()

    def train(self, encoding: str, save_dir: Path, *more: Any, **options: Any) -> Done:
        """fairseq-train with the tiny model and the recipe; ``more`` comes last and so wins."""
        arch = ("--arch", architecture(encoding), "--save-dir", save_dir)
        own = OWN_OPTIONS.get(encoding, ())
        return self.run("train", self.bin, *self.training(), *arch, *own, *more, **options)

    def training(self) -> tuple[Any, ...]:
        return (*USER_DIR, *MODEL, *RECIPE)

    def trained(self, encoding: str) -> Path:
        """Folder with ``checkpoint_last.pt`` and ``log``, the output of its training."""
        words = ("--max-update", UPDATES, *ONE_CHECKPOINT)
        return self.once(f"trained.{encoding}", lambda folder: self.train(encoding, folder, *words))

    def two_epochs(self, encoding: str) -> tuple[Path, str]:
        """Folder and output of a training that ran for two epochs without a stop."""
        folder = self.once(
            f"two_epochs.{encoding}", lambda folder: self.train(encoding, folder, "--max-epoch", 2)
        )
        return folder, self.log(folder)

    def log(self, folder: Path) -> str:
        """The output of the command that made this folder."""
        return (folder / "log").read_text(encoding="utf-8")

    def checkpoint(self, encoding: str) -> Path:
        return self.trained(encoding) / "checkpoint_last.pt"

    def decoded(self, encoding: str) -> str:
        """What fairseq-generate prints for the test set, run once."""
        if encoding not in self._decoded:
            self._decoded[encoding] = self.generate(encoding).ok().stdout
        return self._decoded[encoding]

    def generate(self, encoding: str, *more: Any, data: Path | None = None, **given: Any) -> Done:
        """fairseq-generate of the test set with the trained model; ``more`` comes last."""
        path = ("--path", self.checkpoint(encoding), *USER_DIR, *IN_ONE, *SEARCH)
        return self.run("generate", data or self.bin, *path, *more, **given)

    def interactive(self, encoding: str, lines: list[str], *more: Any) -> Done:
        """fairseq-interactive with these lines as its standard input."""
        path = ("--path", self.checkpoint(encoding), *USER_DIR, *SEARCH, *more)
        return self.run("interactive", self.bin, *path, stdin="".join(f"{x}\n" for x in lines))

    def validate(self, checkpoint: Path, *more: Any) -> Done:
        """fairseq-validate, with its numbers as JSON."""
        sizes = ("--task", "translation", "--max-tokens", 400, "--log-format", "json")
        return self.run("validate", self.bin, *sizes, "--path", checkpoint, *USER_DIR, *more).ok()


def state(folder: Path, name: str = "checkpoint_last.pt") -> dict[str, Any]:
    """The checkpoint, read without diet_mt's help: the test wrote it itself."""
    loaded = torch.load(folder / name, map_location="cpu", weights_only=False)
    assert isinstance(loaded, dict)
    return loaded


def ended_state(folder: Path, name: str = "checkpoint_last.pt") -> dict[str, Any]:
    """What is the same in every run of a training, with and without a stop: all but the clock."""
    ended = state(folder, name)
    extra = ended.pop("extra_state", {})
    names = extra.keys() - {"metrics", "previous_training_time"}
    ended["extra_state"] = {key: extra[key] for key in names}
    ended["optimizer_history"] = ended["optimizer_history"][-1]  # one for each start
    del ended["cfg"]  # names the folder
    return ended


def same(first: Any, second: Any) -> bool:
    """Equal to the last bit, tensors anywhere inside."""
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second)


@dataclass
class Translation:
    """One sentence's best hypotheses: scores in base 2, as printed."""

    texts: list[str] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    positional: list[list[float]] = field(default_factory=list)
    alignments: list[list[tuple[int, int]]] = field(default_factory=list)


def translations(stdout: str) -> dict[int, Translation]:
    """H, P and A lines of fairseq-generate and fairseq-interactive, by number of sentence."""
    by_number: dict[int, Translation] = {}
    for kind, number, rest in re.findall(r"^([HPA])-(\d+)\t(.*)$", stdout, re.MULTILINE):
        entry = by_number.setdefault(int(number), Translation())
        if kind == "H":
            score, _, text = rest.partition("\t")
            entry.scores.append(float(score))
            entry.texts.append(text)
        elif kind == "P":
            entry.positional.append([float(value) for value in rest.split()])
        else:
            pairs = [pair.split("-") for pair in rest.split()]
            entry.alignments.append([(int(source), int(target)) for source, target in pairs])
    return by_number


def texts(stdout: str) -> list[str]:
    """The first hypothesis of each sentence, in the order of the input."""
    by_number = translations(stdout)
    return [by_number[number].texts[0] for number in sorted(by_number)]


def json_lines(stdout: str, tag: str) -> list[dict[str, str]]:
    """Log lines such as ``... | INFO | train_inner | {...}``."""
    start = f"| {tag} | {{"
    lines = [line for line in stdout.split("\n") if start in line]
    return [json.loads(line[line.index(start) + len(start) - 1 :]) for line in lines]


def losses(stdout: str) -> dict[int, str]:
    """Update -> training loss, as printed with ``--log-format json --log-interval 1``."""
    entries = json_lines(stdout, "train_inner")
    return {int(entry["num_updates"]): entry["loss"] for entry in entries if "loss" in entry}


def epoch_losses(stdout: str) -> dict[int, str]:
    """Epoch -> the average training loss that fairseq prints at its end."""
    return {int(entry["epoch"]): entry["train_loss"] for entry in json_lines(stdout, "train")}


def valid_losses(stdout: str) -> dict[int, str]:
    """Update -> validation loss, as printed with ``--log-format json``."""
    entries = json_lines(stdout, "valid")
    return {int(entry["valid_num_updates"]): entry["valid_loss"] for entry in entries}


def measured_loss(stdout: str, subset: str) -> str:
    """The loss that fairseq-validate prints with ``--log-format json``."""
    return json_lines(stdout, subset)[-1][f"{subset}_loss"]


def load(*checkpoints: Path, **overrides: Any) -> tuple[list[torch.nn.Module], Any]:
    """Models in ``eval()`` and their task."""
    paths = [str(path) for path in checkpoints]
    models, _, task = checkpoint_utils.load_model_ensemble_and_task(paths, overrides)
    for model in models:
        model.eval()
    return models, task


@torch.no_grad()
def positional_scores(
    models: list[torch.nn.Module], task: Any, source: str, target: str
) -> list[float]:
    """log2 of the mean probability of each word of ``target`` and of its end, (T,).

    By teacher forcing: no search, no cache, no padding, no batch.
    """
    src = task.source_dictionary.encode_line(source, add_if_not_exist=False).long()
    tgt = task.target_dictionary.encode_line(target, add_if_not_exist=False).long()
    start = tgt.new_tensor([task.target_dictionary.eos()])
    fed = torch.cat([start, tgt[:-1]])[None]  # (1, T)
    each = []
    for model in models:
        logits = model(src[None], torch.tensor([len(src)]), fed)[0]  # (1, T, vocabulary)
        each.append(logits[0].double().log_softmax(-1))
    mean = torch.stack(each).logsumexp(0) - math.log(len(each))  # (T, vocabulary)
    return [float(row[word]) / math.log(2) for row, word in zip(mean, tgt, strict=True)]
