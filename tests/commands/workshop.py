"""A binarized toy corpus and a tiny trained model per encoding, made on first use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..session_folder import once
from .corpus import write_corpus
from .runner import PLUGIN, Done, Runner

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
# The encodings that go through every command: a table in the logits, and mixed keys with positions
# at the input. All encodings are run within one process, by tests/layers and tests/models.
TRAINED = ("diet-rel", "linformer")
# Options of an encoding with which more of it is used.
OWN_OPTIONS = {"linformer": ("--linformer-k", "6")}
UPDATES = 100  # enough for diet-rel to learn the order of words in part, few enough to leave doubts
SEARCH = ("--beam", "10", "--lenpen", "0.6", "--max-len-b", "30")


def architecture(encoding: str) -> str:
    return f"{encoding.replace('-', '_')}_tiny"


class Shared:
    """``folder`` may be shared by test processes: each thing is made once, behind a lock."""

    def __init__(self, folder: Path, run: Runner) -> None:
        self.folder = folder
        self.run = run

    def once(self, name: str, make: Callable[[Path], object]) -> Path:
        """The folder of this name, which ``make`` fills on first use. What a command said that it
        returns is kept there as ``log``.
        """

        def fill(folder: Path) -> None:
            said = make(folder)
            if isinstance(said, Done):
                text = said.ok().stdout + said.stderr
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
        parts = [(f"--{part}pref", self.corpus / part) for part in ("train", "valid", "test")]
        languages = ("--source-lang", "src", "--target-lang", "tgt", "--joined-dictionary")
        words = (languages, *parts, "--destdir")
        return self.once("bin", lambda folder: self.run("preprocess", *words, folder))

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
        return folder, (folder / "log").read_text(encoding="utf-8")

    def checkpoint(self, encoding: str) -> Path:
        return self.trained(encoding) / "checkpoint_last.pt"

    def decoded(self, encoding: str) -> str:
        """What fairseq-generate prints for the test set, run once."""
        if encoding not in self._decoded:
            self._decoded[encoding] = self.generate(encoding).ok().stdout
        return self._decoded[encoding]

    def generate(self, encoding: str, *more: Any, **options: Any) -> Done:
        """fairseq-generate of the test set with the trained model; ``more`` comes last."""
        path = ("--path", self.checkpoint(encoding), *USER_DIR, *IN_ONE, *SEARCH)
        return self.run("generate", self.bin, *path, *more, **options)
