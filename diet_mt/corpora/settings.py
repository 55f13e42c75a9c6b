"""Settings of subwords, cleaning and binarization, shared by all corpora."""

from __future__ import annotations

from dataclasses import dataclass

from ..system.options import NotNegative, Positive, Share, option

BPE_WORDS = 1_000_000
SPM_SAMPLE = 3_000_000
SPM_COVERAGE = 0.9999
# Kind of subwords -> the file of its model in a data folder.
MODELS = {"bpe": "bpe.codes", "spm": "spm.model"}
DEMO_SIZES = {"train": 20000, "valid": 500, "test": 500}  # pairs


@dataclass(frozen=True)
class Limits:
    """Cleaning of the training pairs."""

    langs: tuple[str, str] = ("", "")
    max_words: Positive = option("maximum words per side, separated by white space", 250)
    max_chars: Positive = option("maximum characters per side", 2000)
    ratio: NotNegative = option(
        "maximum ratio of the longer side to the shorter, in characters", 2.0
    )
    language_chars: Positive = option("minimum characters of a side to identify its language", 40)
    certainty: NotNegative = option(
        "drop a pair if another language has at least this probability; above 1: drop none", 0.9
    )


@dataclass(frozen=True)
class TextSettings:
    """Subwords."""

    pair: tuple[str, str] = ("", "")  # source and target language
    subwords: str = option(
        "bpe: byte-pair encoding of Moses tokens; spm: SentencePiece on plain text",
        "bpe",
        choices=("bpe", "spm"),
    )
    bpe_merges: Positive = option("bpe: number of merge operations", 6000)
    bpe_words: Positive = option("bpe: number of most frequent words to learn from", BPE_WORDS)
    dictionary: int = option(
        "bpe: maximum size of fairseq's dictionary; -1: no limit", -1, metavar="N"
    )
    spm_size: Positive = option("spm: vocabulary size", 6000)
    spm_sample: Positive = option("spm: maximum number of sentences to learn from", SPM_SAMPLE)
    spm_coverage: Share = option("spm: character coverage", SPM_COVERAGE)
    clean: Limits | None = None  # None: no cleaning
    workers: int = 1  # processes; the result is the same for any number

    def words(self) -> str:
        """The settings that determine the result, as stored in the file ``settings``."""
        words = ["-".join(self.pair)]
        if self.subwords == "bpe":
            words.append(f"BPE_MERGES={self.bpe_merges}")
            if self.bpe_words != BPE_WORDS:
                words.append(f"BPE_WORDS={self.bpe_words}")
            if self.dictionary != -1:
                words.append(f"DICTIONARY={self.dictionary}")
        else:
            words.append(f"SPM_SIZE={self.spm_size} SPM_SAMPLE={self.spm_sample}")
            words.append(f"SPM_COVERAGE={self.spm_coverage:g}")
        if self.clean is not None:
            limits = self.clean
            words.append(
                f"CLEAN='--max-words {limits.max_words} --max-chars {limits.max_chars} "
                f"--ratio {limits.ratio} --language-chars {limits.language_chars} "
                f"--certainty {limits.certainty}'"
            )
        return " ".join(words)
