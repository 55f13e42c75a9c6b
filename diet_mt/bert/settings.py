"""Data settings of encoders: pretraining, GLUE and XNLI, question answering."""

from __future__ import annotations

from dataclasses import dataclass

from ..corpora.settings import SPM_COVERAGE, SPM_SAMPLE
from ..system.errors import UserError
from ..system.options import Folder, Positive, Share, option

SKIP, REFUSE = "skip", "refuse"  # --bad-rows
# <s> question </s> </s> context </s>: the form of fairseq's sentence prediction with
# --init-token 0 --separator-token 2.
SPECIAL = 4
# As in Chen et al. 2021: the subwords, the size of the vocabulary, and the length of a sequence.
USUAL = {"english": ("wordpiece", 30_000, 128), "multilingual": ("spm", 120_000, 512)}


@dataclass(frozen=True)
class LabelledSettings:
    """Subwords and length of the examples."""

    vocab: Folder = option("bin folder made by diet-mt prepare mlm")
    max_length: Positive = option(
        "tokens of an example, special tokens included; longer ones are truncated", 128
    )
    bad_rows: str = option("malformed rows: refuse or skip them", REFUSE, choices=(REFUSE, SKIP))
    workers: int = 1  # processes; the result is the same for any number


@dataclass(frozen=True)
class MlmSettings:
    """Subwords and sequences."""

    subwords: str = option(
        "subword model (default: that of --setting)", "", choices=("wordpiece", "spm")
    )
    vocab_size: Positive = option(
        "vocabulary size, fairseq's five special tokens included (default: that of --setting)", 0
    )
    max_length: Positive = option(
        "pieces of a sequence, <s> and </s> included (default: that of --setting)", 0
    )
    language: str = option(
        "language of files without LANGUAGE:, for sentence splitting", "en", metavar="CODE"
    )
    cased: bool = option("WordPiece: keep capital letters and accents", False)
    vocab_sample: Positive = option("maximum number of sentences to learn from", SPM_SAMPLE)
    spm_coverage: Share = option("spm: character coverage", SPM_COVERAGE)
    alpha: Share = option("exponent that smooths the shares of languages; 1: no smoothing", 0.5)
    workers: int = 1  # processes; the result is the same for any number

    def words(self) -> str:
        """The settings that determine the results, as stored in the file ``settings``."""
        return (
            f"LANGUAGE={self.language} SUBWORDS={self.subwords} MAX_LENGTH={self.max_length} "
            f"VOCAB_SAMPLE={self.vocab_sample} ALPHA={self.alpha:g}"
        )

    def of_vocabulary(self) -> str:
        """The settings that determine the vocabulary and all data made with it."""
        if self.subwords == "wordpiece":
            return f"VOCAB_SIZE={self.vocab_size} CASED={1 if self.cased else ''}"
        return f"VOCAB_SIZE={self.vocab_size} SPM_COVERAGE={self.spm_coverage:g}"


@dataclass(frozen=True)
class WindowSizes:
    """Windows, in subwords; they must overlap or touch."""

    max_tokens: Positive = option("subwords of a window, question and special tokens included", 512)
    stride: Positive = option("distance between the starts of two windows", 128)
    max_question: Positive = option("subwords of a question; longer ones are truncated", 64)

    def __post_init__(self) -> None:
        least = self.room(self.max_question)
        if least < self.stride:
            what = f"leaves {least} tokens for the context, less than the stride {self.stride}"
            raise UserError(f"max_tokens {self.max_tokens}: {what}")

    def room(self, question: int) -> int:
        """Number of context subwords in a window with a ``question`` of this length."""
        return self.max_tokens - question - SPECIAL
