"""Settings from parallel text to fairseq's binaries, the same for every corpus."""

from __future__ import annotations

from dataclasses import dataclass

BPE_WORDS = 1_000_000
SPM_SAMPLE = 3_000_000
SPM_COVERAGE = 0.9999
DEMO_SIZES = {"train": 20000, "valid": 500, "test": 500}  # pairs


@dataclass(frozen=True)
class Limits:
    """Limits of a training pair."""

    langs: tuple[str, str]
    max_words: int = 250  # what white space separates, on either side
    max_chars: int = 2000  # on either side
    ratio: float = 2.0  # of characters, the longer side to the shorter
    language_chars: int = 40  # the language of shorter sides is not identified
    certainty: float = 0.9  # drop above this probability of another language; > 1: never


@dataclass(frozen=True)
class TextSettings:
    """Options of cleaning and subwords."""

    pair: tuple[str, str]  # source and target language
    subwords: str = "bpe"  # on Moses tokens; or spm: SentencePiece on plain text
    bpe_merges: int = 6000
    bpe_words: int = BPE_WORDS  # most frequent words that the merges are learnt from
    dictionary: int = -1  # bpe: entries of fairseq's dictionary at most; -1: all
    spm_size: int = 6000  # pieces
    spm_sample: int = SPM_SAMPLE  # sentences that they are learnt from
    spm_coverage: float = SPM_COVERAGE  # share of the characters that are pieces
    clean: Limits | None = None  # None: the training pairs as they are
    workers: int = 1  # processes; the result is the same for any number

    def words(self) -> str:
        """All that the result depends on, for the file ``settings``."""
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
